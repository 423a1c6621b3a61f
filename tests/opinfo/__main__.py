"""Run OpInfo's tasks, and write docs/reference/operators.md when all of them have run.

Results are stored as JSON lines: a run that was stopped can be resumed, unless torch, the adapter,
the libraries or the options that affect results have changed. The exit status is 1 if a result
differs from the CPU's and the file of known differences does not explain it, or if the file
explains one that no longer exists.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import torch
import torch_dml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..support.shards import Shard
from . import differences, page
from .results import Result, ResultFile, Subject, read_all
from .tasks import DTYPES, TORCH, Task, all_tasks, select
from .trial import Settings, run_task
from .worker import run

ROOT = Path(__file__).resolve().parents[2]


def _dtypes(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not set(names) <= set(DTYPES):
        raise ValueError(text)
    return names


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.opinfo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choice = parser.add_argument_group("which tasks")
    choice.add_argument("--operators", default="", metavar="REGEX", help="operators whose name has a match")
    choice.add_argument("--dtypes", type=_dtypes, default=DTYPES, metavar="A,B", help=f"of {', '.join(DTYPES)}")
    choice.add_argument("--shard", type=Shard.parse, metavar="I/N", help="the I-th of N parts, from 0")
    how = parser.add_argument_group("how they run")
    how.add_argument("--device", default="dml", help="the device (default: %(default)s)")
    how.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)")
    how.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for a task (default: %(default)s)")
    how.add_argument("--seed", type=int, default=0, help="of the samples and of random operators (default: 0)")
    how.add_argument(
        "--max-samples", type=int, default=0, metavar="N", help="of a task, evenly spread (default: 0, all)"
    )
    how.add_argument("--no-backward", dest="backward", action="store_false", help="skip float32's backward")
    how.add_argument(
        "--compile", action="store_true", help="compare compiled operators with the device's own, instead of the CPU's"
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--results",
        type=Path,
        help="kept results (default: build/opinfo.jsonl, or compiled_opinfo.jsonl)",
    )
    files.add_argument("--fresh", action="store_true", help="forget the kept results")
    files.add_argument(
        "--kept", action="store_true", help="run nothing: judge kept results, from whatever device and machine"
    )
    files.add_argument("--differences", type=Path, help="default: docs/data/operator_differences.toml, or compiled_")
    files.add_argument("--page", type=Path, default=ROOT / "docs" / "reference" / "operators.md")
    options = parser.parse_args()
    compiled = "compiled_" if options.compile else ""
    options.results = options.results or ROOT / "build" / f"{compiled}opinfo.jsonl"
    options.differences = options.differences or ROOT / "docs" / "data" / f"{compiled}operator_differences.toml"
    return options


def _subject(settings: Settings) -> Subject:
    digest = hashlib.sha256()
    for library in sorted((Path(torch_dml.__file__).parent / "lib").iterdir()):
        digest.update(library.read_bytes())
    return Subject(
        torch=TORCH,
        adapter=torch.get_device_module(settings.device).get_device_name(settings.device),
        libraries=digest.hexdigest()[:16],
        seed=settings.seed,
        max_samples=settings.max_samples,
        backward=settings.backward,
        compile=settings.compile,
    )


def _run(
    tasks: list[Task], settings: Settings, options: argparse.Namespace, kept: ResultFile, console: Console
) -> None:
    """Run the tasks without a stored result, with a progress bar."""
    missing = [task for task in tasks if task not in kept.results]
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[verdicts]}")),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("OpInfo", total=len(tasks), completed=len(tasks) - len(missing), verdicts="")
        for result in run(missing, partial(run_task, settings=settings), options.jobs, options.timeout):
            kept.add(result)
            if result.differs:
                progress.console.print(str(result), markup=False, highlight=False, soft_wrap=True)
            counts = Counter(kept.results[task].verdict.value for task in tasks if task in kept.results)
            verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
            progress.update(bar, advance=1, verdicts=verdicts)


def _found(tasks: list[Task], options: argparse.Namespace, console: Console) -> tuple[Subject, dict[Task, Result]]:
    """The tasks of this run, and their results; stored results of an earlier run are reused."""
    settings = Settings(options.device, options.seed, options.max_samples, options.backward, options.compile)
    kept = ResultFile(options.results, _subject(settings), options.fresh)
    try:
        _run(tasks, settings, options, kept, console)
    finally:
        kept.close()
    return kept.subject, kept.results


def _report(heading: str, lines: list[str], console: Console) -> None:
    if lines:
        console.print(
            f"{len(lines)} {heading}:",
            *(f"  {line}" for line in lines),
            sep="\n",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def main() -> int:
    """Run the tasks, judge the results and write the page."""
    options, console = _options(), Console()
    everything = all_tasks()
    tasks = select(everything, options.operators, options.dtypes, options.shard)
    subject, found = read_all(options.results) if options.kept else _found(tasks, options, console)
    missing = [str(task) for task in tasks if task not in found]
    _report("tasks that did not run", missing, console)

    results = [found[task] for task in tasks if task in found]
    known = differences.read(options.differences, subject.torch)
    unexplained = [str(result) for result in differences.unexplained(results, known)]
    outdated = differences.outdated(results, known, everything)
    _report(f"differences that {options.differences.name} does not explain", unexplained, console)
    _report(f"explanations in {options.differences.name} that no longer apply", outdated, console)
    # The page is about operators alone.
    before = {} if subject.compile else page.read_marks(options.page)
    changes = [
        f"{result.task}: {before[result.task]} -> {page.mark(result)}"
        for result in results
        if page.mark(result) != before.get(result.task, page.mark(result))
    ]
    _report(f"changes from {options.page.name}", changes, console)
    console.print(
        f"{sum(result.native for result in results)} native of {sum(bool(page.mark(result)) for result in results)}"
    )
    if missing or unexplained or outdated:
        return 1
    everywhere = (subject.seed, subject.max_samples, subject.backward, subject.compile) == (0, 0, True, False)
    if tasks == everything and everywhere:
        options.page.write_text(page.render(results, known, subject))
        console.print(f"{options.page} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
