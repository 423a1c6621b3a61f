"""Run TensorFlow's tests of operators on the device.

TensorFlow's files are in a source tree of its release, which --tensorflow names. Results are stored
as JSON lines: what an earlier run stored is not run again, so that a run can be stopped. The exit
status is 1 if a test fails on the device alone that the file of known failures does not explain, or
if that explains one that no longer fails; 2 if there are no tests to run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock

# A software adapter's kernels run a few times here: no optimisation. The workers inherit it.
os.environ.setdefault("GALLIVM_PERF", "nopt")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from importlib import metadata

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tensorflow_dml import library

from . import known, page, sources
from .results import Result, ResultFile, Test
from .running import Runner

ROOT = Path(__file__).resolve().parents[3]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m upstream", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    families = ", ".join(sources.FAMILIES)
    choice = parser.add_argument_group("which tests")
    choice.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"pattern below tensorflow/python, or a family: {families} (default: all)",
    )
    choice.add_argument("--tensorflow", type=Path, metavar="FOLDER", help="a source tree of the installed release")
    choice.add_argument("-k", dest="pattern", default="", metavar="REGEX", help="tests whose name has a match")
    how = parser.add_argument_group("how they run")
    how.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)")
    how.add_argument("--time", type=float, default=120, metavar="SECONDS", help="for a test (default: %(default)s)")
    files = parser.add_argument_group("files")
    results = ROOT / "build" / "tensorflow_tests.jsonl"
    files.add_argument("--results", type=Path, default=results, help="kept results (default: build/%(metavar)s)")
    files.add_argument("--fresh", action="store_true", help="forget the kept results")
    files.add_argument("--again", action="store_true", help="run what failed before again")
    files.add_argument("--kept", action="store_true", help="run nothing: judge the kept results")
    files.add_argument("--known", type=Path, default=ROOT / "docs" / "data" / "tensorflow_tests.toml")
    files.add_argument("--write", type=Path, metavar="PAGE", help="for example docs/reference/tensorflow_tests.md")
    return parser.parse_args()


def _library() -> Path:
    if named := os.environ.get("TENSORFLOW_DML_LIBRARY"):
        return Path(named).resolve()
    built = [ROOT / "target" / profile / library.NAME for profile in ("debug", "release")]
    there = [path for path in built if path.exists()]
    return max(there, key=lambda path: path.stat().st_mtime) if there else library.path()


def _installed() -> str:
    for name in ("tensorflow-cpu", "tensorflow"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


def _run(files: list[str], tree: sources.Tree, plugin: Path, options: argparse.Namespace, kept: ResultFile) -> Runner:
    """Run the tests without a kept result, then on the CPU those that failed."""
    digest = hashlib.sha256(plugin.read_bytes()).hexdigest()[:16]
    runner = Runner(tree.folder, plugin, digest, options.time)
    on_cpu = Runner(tree.folder, None, digest, options.time)
    console, lock = Console(stderr=True), Lock()
    columns = (
        TextColumn("files"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[n]}"),
    )

    def one_file(name: str) -> None:
        before = {test: result for test, result in kept.results.items() if test.file == name}
        done = [test.name for test, result in before.items() if not (options.again and result.questionable)]
        for result in runner.run(name, options.pattern, done):
            with lock:
                kept.add(result)
            if result.wrong:
                progress.console.print(str(result), markup=False, highlight=False, soft_wrap=True)
        lost = [r.test.name for r in kept.results.values() if r.test.file == name and r.wrong and r.control is None]
        for control in on_cpu.run(name, only=lost) if lost else ():
            with lock:
                kept.add(replace(kept.results[control.test], control=control.verdict))
        counts = Counter(result.verdict.value for result in kept.results.values())
        progress.update(bar, advance=1, n=", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))

    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(options.jobs) as threads:
        bar = progress.add_task("files", total=len(files), n="")
        list(threads.map(one_file, files))
    return runner


def _adapter() -> str:
    adapters = library.information()["devices"]
    return str(adapters[0]["name"]) if adapters else "no adapter"


def _report(heading: str, lines: list[str]) -> None:
    if lines:
        print("\n  ".join((f"{len(lines)} {heading}:", *lines)))


def _judge(
    results: dict[Test, Result],
    files: list[str],
    broken: dict[str, str],
    tree: sources.Tree,
    options: argparse.Namespace,
) -> int:
    """Say what fails without an explanation, and write the page."""
    failures = known.read(options.known)
    chosen = [result for test, result in results.items() if test.file in files]
    unexplained = [one for one in chosen if one.questionable and known.explanation(one, failures) is None]
    outdated = known.outdated(chosen, failures)
    _report("files that cannot be imported", [f"{file}: {why}" for file, why in broken.items()])
    _report(f"failures that {options.known.name} does not explain", [str(one) for one in unexplained])
    _report(f"explanations in {options.known.name} that no longer apply", outdated)
    print(", ".join(f"{n} {name}" for n, name in zip(page.counts(chosen), page.COUNTED, strict=True)))
    if options.write:
        there = {result.test.file for result in chosen}
        subject = f"TensorFlow {_installed()}, on {_adapter()}; test files of a source tree of {tree.version}"
        families = {name: [file for file in some if file in files] for name, some in tree.families().items()}
        missing = sum(name not in there for some in tree.families().values() for name in some)
        options.write.write_text(page.render(chosen, families, failures, subject, missing), encoding="utf-8")
        print(f"{options.write} is written")
    return 1 if broken or unexplained or outdated else 0


def main() -> int:
    """Find the files, run them, judge the results and write the page."""
    options = _options()
    try:
        if options.tensorflow is None:
            how = sources.HOW_TO_GET_IT.format(version=_installed())
            raise sources.SourceError(
                f"--tensorflow is missing: where TensorFlow's tests are. No wheel has them:\n{how}"
            )
        tree = sources.Tree(options.tensorflow)
        files = tree.choose(options.files)
    except sources.SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    plugin = _library()
    os.environ["TENSORFLOW_DML_LIBRARY"] = str(plugin)
    kept = ResultFile(options.results, options.fresh)
    try:
        broken = {} if options.kept else _run(files, tree, plugin, options, kept).broken
    finally:
        kept.close()
    return _judge(kept.results, files, broken, tree, options)


if __name__ == "__main__":
    sys.exit(main())
