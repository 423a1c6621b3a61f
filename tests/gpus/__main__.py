"""Compile the kernels of the tests and of `bench` with the drivers of GPUs that are not at hand.

The tests run once on this machine's adapter, `bench` on a device that computes nothing, and the
calls of operators that they make are recorded. Then these calls are made on each GPU, whose driver
compiles the kernels and computes nothing. The exit status is 1 if a driver refuses a kernel, a
process ends early, or a kernel spills that known.toml does not explain.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from torch_dml.cli.kernels import summary

from ..support.environment import ROOT
from . import known, main_loops, page
from .compiling import Compiled, command, compile_all, names

FOLDER = ROOT / "target" / "gpus"
# The device that `bench` runs on to be recorded.
_GPU_OF_BENCH = "navi31"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gpus", nargs="*", metavar="GPU", help="names of scripts/other-gpus.sh --list (default: all)")
    parser.add_argument("--tests", default="", metavar="OPTIONS", help='which tests, as pytest\'s options: "-m smoke"')
    parser.add_argument("--record", action="store_true", help="record calls anew, though there are recorded ones")
    parser.add_argument(
        "--calls",
        type=Path,
        metavar="FILE",
        help="make the calls of this file, which were recorded before, of the same tests",
    )
    parser.add_argument("--no-bench", dest="bench", action="store_false", help="leave out the kernels of `bench`")
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="GPUs, or tests, at once (default: %(default)s)"
    )
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="what is kept for the next run (default: target/gpus)"
    )
    parser.add_argument(
        "--loops", action="store_true", help="read the main loops alone; --write replaces their section of the page"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page here")
    options = parser.parse_args()
    if unknown := sorted(set(options.gpus) - set(names())):
        parser.error(f"no such GPU: {', '.join(unknown)} (of {', '.join(names())})")
    return options


def record(folder: Path, tests: Sequence[str], jobs: int) -> None:
    """Run tests on this machine's adapter, and write the calls that they make to files in a folder.

    A test may fail, since it also counts the launches of the recorder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("calls.*"):
        old.unlink()
    environment = {**os.environ, "RECORD_CALLS": str(folder / "calls"), "PYTHONPATH": str(ROOT / "python")}
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.gpus.recording", "-n", str(jobs), "--dist", "loadfile", "-q"]
    subprocess.run([*pytest, "--tb=no", "-r", "N", *tests], cwd=ROOT, env=environment, check=False)
    lines = dict.fromkeys(line for file in sorted(folder.glob("calls.*")) for line in file.read_text().splitlines())
    for part in folder.glob("calls.*"):
        part.unlink()
    (folder / "calls.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def record_bench(folder: Path) -> None:
    """Write the calls that `bench` makes to a file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "bench.jsonl"
    subprocess.run(
        command(_GPU_OF_BENCH, ["-m", "tests.gpus.bench_calls", str(file.with_suffix(".part"))]),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TORCH_DML_FUSION": "0"},
        check=True,
    )
    file.with_suffix(".part").rename(file)


def read_loops(
    gpus: Sequence[str], options: argparse.Namespace, console: Console
) -> tuple[list[main_loops.Loops], bool]:
    """Read the main loops on GPUs. Returns them, and whether any does too little without reason."""
    known = main_loops.reasons()
    options.folder.mkdir(parents=True, exist_ok=True)
    found = []
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda gpu: main_loops.read_loops(gpu, options.folder), gpus):
            found.append(result)
            for line in main_loops.listing(result):
                console.print(line, markup=False)
            if main_loops.below(result) and not main_loops.reasons_for(result.gpu, "product f32", known):
                console.print("  products of float32 do too little work, and loops.toml does not say why")
                failed = True
            failed = failed or bool(result.error)
    return found, failed


def _loops(options: argparse.Namespace, console: Console) -> int:
    found, failed = read_loops(options.gpus or names(), options, console)
    if options.write:
        options.write.write_text(page.with_loops(options.write.read_text("utf-8"), found), "utf-8")
        console.print(f"Written to {options.write}")
    return int(failed)


def main() -> int:
    options = _options()
    console = Console(soft_wrap=True)
    if options.loops:
        return _loops(options, console)
    tests = shlex.split(options.tests)
    folder = options.folder / ("-".join(["calls", *(part.strip("-/").replace("/", ".") for part in tests)]) or "all")
    calls = [options.calls or folder / "calls.jsonl"]
    if not options.calls and (options.record or not calls[0].exists()):
        record(folder, tests, options.jobs)
    if options.bench:
        calls.append(options.folder / "bench.jsonl")
        if options.record or not calls[1].exists():
            record_bench(options.folder)
    chosen = options.gpus or names()
    explained = known.read()
    failed = False

    def compiled(gpu: str) -> Compiled:
        return compile_all(gpu, calls, options.folder)

    done = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(compiled, chosen):
            done.append(result)
            console.print(
                f"{result.gpu}: {summary(result.programs) if result.programs else 'no kernels'}", markup=False
            )
            for end in result.ends:
                console.print(f"  {end}; see {options.folder / result.gpu}.log", markup=False)
            for program in known.unexplained(result.gpu, result.programs, explained):
                why = program.error or f"{program.spills} spills in subgroups of {program.subgroup_size}"
                console.print(f"  {program.kernel} {program.id[:8]}: {why}", markup=False)
                failed = True
            failed = failed or bool(result.ends) or not result.programs
    if options.write:
        loops, less = read_loops(chosen, options, console)
        failed = failed or less
        which = f"tests: `pytest {options.tests}`" if tests else "all tests"
        options.write.write_text(page.text(done, loops, which, bench=options.bench), "utf-8")
        console.print(f"Written to {options.write}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
