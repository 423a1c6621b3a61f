"""Run PyTorch's device-generic tests on the device.

PyTorch's files are in a source tree of its release, which --pytorch names. Results are stored as
JSON lines: a run that was stopped can be resumed, unless torch, the adapter, the libraries or the
source tree have changed. The exit status is 1 if a test fails that the file of known differences
does not explain, or if the file explains one that no longer fails; 2 if there are no tests to run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

# As for the other tests: two devices on every machine, no warning of a software adapter, and no
# optimisation of kernels that run a few times. Set before the first device is opened; the worker
# processes inherit them.
os.environ.setdefault("TORCH_DML_DEVICES_PER_ADAPTER", "2")
os.environ.setdefault("TORCH_DML_SOFTWARE", "0")
os.environ.setdefault("GALLIVM_PERF", "nopt")

import torch
import torch_dml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..support.shards import Shard
from . import differences, page, sources, worker
from .results import OtherSubjectError, Result, ResultFile, Subject, Test, read_all

ROOT = Path(__file__).resolve().parents[2]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.device_generic", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choice = parser.add_argument_group("which tests")
    choice.add_argument("files", nargs="*", metavar="FILE", help="of the tree's `test`, or a path (default: all)")
    choice.add_argument("--pytorch", type=Path, metavar="FOLDER", help="a source tree of the installed torch's release")
    choice.add_argument("--suites", action="store_true", help="only the suites of this project, without a source tree")
    choice.add_argument("-k", dest="pattern", default="", metavar="REGEX", help="tests whose name has a match")
    choice.add_argument("--shard", type=Shard.parse, metavar="I/N", help="the I-th of N parts, from 0")
    how = parser.add_argument_group("how they run")
    how.add_argument("--device", default="dml", help="the device (default: %(default)s)")
    how.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)")
    how.add_argument("--time", type=float, default=120, metavar="SECONDS", help="for a test (default: %(default)s)")
    files = parser.add_argument_group("files")
    files.add_argument(
        "--results",
        type=Path,
        default=ROOT / "build" / "device_generic.jsonl",
        help="kept results (default: build/device_generic.jsonl)",
    )
    files.add_argument("--fresh", action="store_true", help="forget the kept results")
    files.add_argument("--kept", action="store_true", help="run nothing: judge the kept results")
    files.add_argument(
        "--again", action="store_true", help="run what -k names again; results of other libraries are kept beside"
    )
    files.add_argument("--differences", type=Path, default=ROOT / "docs" / "data" / "device_generic_differences.toml")
    files.add_argument("--write", type=Path, metavar="PAGE", help="for example docs/reference/device_generic.md")
    options = parser.parse_args()
    if (options.again or options.kept) and not options.results.exists():
        parser.error(f"{options.results} does not exist")
    if options.write and options.pattern:
        parser.error("--write takes all tests, or a shard of them: what -k chooses stands for nothing else")
    return options


def _tree(options: argparse.Namespace) -> sources.Tree | None:
    if options.pytorch is not None:
        return sources.open_tree(options.pytorch)
    if not options.files and not options.suites:
        raise sources.SourceError(
            "--pytorch is missing: where PyTorch's tests are. Its wheels have none:\n"
            + sources.HOW_TO_GET_IT.format(version=sources.released())
        )
    return None


def _adapter(device: str) -> str:
    if torch.device(device).type == "cpu":
        return "the CPU"
    name: str = torch.get_device_module(device).get_device_name(device)
    return name


def _digest(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _subject(device: str, tree: sources.Tree | None, files: dict[str, Path]) -> Subject:
    libraries = _digest(*sorted((Path(torch_dml.__file__).parent / "lib").iterdir()))
    where = str(tree) if tree is not None else "no source tree of PyTorch"
    digests = {name: _digest(file) for name, file in files.items()}
    return Subject(torch.__version__, _adapter(device), libraries, where, digests)


def _chosen(everything: list[Test], options: argparse.Namespace) -> list[Test]:
    return [
        test
        for test in everything
        if re.search(options.pattern, str(test)) and (options.shard is None or test in options.shard)
    ]


def _run(
    tests: list[Test],
    files: dict[str, Path],
    options: argparse.Namespace,
    kept: ResultFile,
    known: list[differences.Difference],
    console: Console,
) -> None:
    """Run the tests without a stored result, with a progress bar."""
    missing = [test for test in tests if test not in kept.results]
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[verdicts]}")),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("tests", total=len(tests), completed=len(tests) - len(missing), verdicts="")
        for result in worker.run(missing, files, options.device, options.jobs, options.time):
            kept.add(result)
            if result.questionable and differences.explanation(result, known) is None:
                progress.console.print(str(result), markup=False, highlight=False, soft_wrap=True)
            counts = Counter(kept.results[test].verdict.value for test in tests if test in kept.results)
            progress.update(bar, advance=1, verdicts=", ".join(f"{n} {name}" for name, n in counts.most_common()))


def _control(tests: list[Test], files: dict[str, Path], options: argparse.Namespace, kept: ResultFile) -> None:
    """Run the tests that failed on the device on the CPU."""
    if torch.device(options.device).type == "cpu":
        return
    wrong = [test for test in tests if kept.results[test].wrong and kept.results[test].control is None]
    for test, verdict in worker.control(wrong, files, options.device, options.jobs, options.time):
        kept.add(replace(kept.results[test], control=verdict))


def _found(
    tests: list[Test],
    files: dict[str, Path],
    subject: Subject,
    options: argparse.Namespace,
    known: list[differences.Difference],
    console: Console,
) -> tuple[Subject, dict[Test, Result]]:
    """The results of the tests; stored results of an earlier run are reused."""
    if options.again:
        kept = ResultFile.of_later_libraries(options.results, subject, set(tests))
    else:
        kept = ResultFile(options.results, subject, options.fresh)
    try:
        _run(tests, files, options, kept, known, console)
        _control(tests, files, options, kept)
    finally:
        kept.close()
    return subject, kept.results


def _report(heading: str, lines: list[str], console: Console) -> None:
    if lines:
        text = "\n  ".join((f"{len(lines)} {heading}:", *lines))
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def main() -> int:
    """Find the tests, run them, judge the results and write the page."""
    options, console = _options(), Console()
    try:
        tree = _tree(options)
        names = options.files or (list(sources.suites()) if options.suites else [])
        files = sources.choose(names, tree)
    except sources.SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    collections = worker.collect(files, options.device, options.jobs)
    broken = [f"{one.file}: {one.error}" for one in collections if one.error]
    everything = [test for one in collections for test in one.tests]
    tests = _chosen(everything, options)
    if not tests and not broken:
        print(f"error: no test of {', '.join(files)} is for {options.device} and chosen", file=sys.stderr)
        return 2

    known = differences.read(options.differences, sources.released())
    if options.kept:
        subject, found = read_all(options.results)
    else:
        try:
            subject, found = _found(tests, files, _subject(options.device, tree, files), options, known, console)
        except OtherSubjectError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    results = [found[test] for test in tests if test in found]
    unexplained = [one for one in results if one.questionable and differences.explanation(one, known) is None]
    outdated = differences.outdated(results, known, everything)
    _report("files that cannot be imported", broken, console)
    _report(f"failures that {options.differences.name} does not explain", [str(one) for one in unexplained], console)
    _report(f"explanations in {options.differences.name} that no longer apply", outdated, console)
    counts = zip(page.counts(results), page.COUNTED, strict=True)
    console.print(", ".join(f"{count} {name}" for count, name in counts), highlight=False, soft_wrap=True)
    if options.write:
        options.write.write_text(page.render(results, everything, known, subject, options.shard))
        console.print(f"{options.write} is written")
    return 1 if broken or unexplained or outdated else 0


if __name__ == "__main__":
    sys.exit(main())
