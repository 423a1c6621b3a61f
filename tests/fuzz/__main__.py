"""Run random cases of the operators on the device and on the CPU, and list differences by cause.

A case's number determines everything about it: `--case 12345` runs that one alone, in this process,
and with `--show` prints it as a program. The exit status is 1 if a difference is found that
tests/fuzz/known does not explain.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

# Mesa's software adapter compiles without optimisation: most kernels run a few times.
os.environ.setdefault("GALLIVM_PERF", "nopt")
# Some of OpInfo's samples are in the order of a set of strings, which has to be the same in all
# processes.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, sys.orig_argv)

import torch
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn, track

from . import cases, coverage, families, known, report, snippet, work
from .reference import Reference
from .schemas import overloads
from .trial import Finding, run_case


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", type=int, metavar="N", help="run this case alone")
    parser.add_argument(
        "--coverage", action="store_true", help="list the overloads that the cases do not reach, instead"
    )
    parser.add_argument("--show", action="store_true", help="print the case as a program")
    which = parser.add_argument_group("which cases")
    which.add_argument("--seconds", type=float, default=60, metavar="S", help="for so long (default: %(default)s)")
    which.add_argument("--cases", type=int, metavar="N", help="so many, however long that takes")
    which.add_argument("--start", type=int, default=0, metavar="N", help="the first one's number (default: 0)")
    which.add_argument(
        "--families",
        default=families.FIRST,
        metavar="NAMES",
        help=f"of which families, whose numbers follow each other at {families.SPAN:,}: all, or some of "
        f"{', '.join(families.NAMES)} with commas (default: %(default)s)",
    )
    which.add_argument("--again", type=Path, metavar="FILE", help="those of a file that --findings kept, instead")
    which.add_argument("--operators", default="", metavar="REGEX", help="those whose operator's name has a match")
    how = parser.add_argument_group("how they run")
    how.add_argument("--device", default="dml", help="the device (default: %(default)s)")
    how.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)")
    how.add_argument("--timeout", type=float, default=120, metavar="S", help="for a case (default: %(default)s)")
    how.add_argument("--findings", type=Path, metavar="FILE", help="keep every difference as a line of JSON")
    options = parser.parse_args()
    options.families = list(families.NAMES) if options.families == "all" else options.families.split(",")
    for name in set(options.families) - set(families.NAMES):
        parser.error(f"--families: there is no {name!r}; there are {', '.join(families.NAMES)}")
    return options


def _one(options: argparse.Namespace, console: Console) -> int:
    if options.show:
        console.print(snippet.program(cases.make(options.case), options.device), markup=False, highlight=False)
    reference = Reference(options.timeout)
    try:
        finding = run_case(options.case, torch.device(options.device), reference)
    finally:
        reference.stop()
    for difference in finding.differences:
        console.print(f"{finding.operator} [{finding.dtype}] {difference.kind}: {difference.message}", markup=False)
    return int(bool(known.unexplained([finding], known.read())))


def _numbers(options: argparse.Namespace) -> Sequence[int]:
    if options.again is not None:
        return sorted({json.loads(line)["number"] for line in options.again.read_text().splitlines()})
    count = families.SPAN - options.start if options.cases is None else options.cases
    if len(options.families) == 1:
        first = families.NAMES.index(options.families[0]) * families.SPAN + options.start
        return range(first, first + count)
    return families.Interleaved(options.families, options.start, count, cases.BLOCK)  # type: ignore[return-value]


def _many(options: argparse.Namespace, console: Console) -> list[Finding]:
    numbers = _numbers(options)
    limited = options.cases is None and options.again is None
    until = time.monotonic() + options.seconds if limited else math.inf
    found: list[Finding] = []
    explanations, counts = known.read(), Counter[str]()
    columns = (TextColumn("{task.completed} cases"), TimeElapsedColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, console=console) as progress, ExitStack() as stack:
        kept = stack.enter_context(options.findings.open("w")) if options.findings else None
        bar = progress.add_task("fuzz", total=None, counts="")
        for finding in work.run(numbers, options.device, options.jobs, options.timeout, until, options.operators):
            found.append(finding)
            if finding.differs and kept is not None:
                print(json.dumps(asdict(finding)), file=kept, flush=True)
            counts["unexplained" if known.unexplained([finding], explanations) else finding.kind] += 1
            text = ", ".join(f"{number} {kind}" for kind, number in counts.most_common(6))
            progress.update(bar, advance=1, counts=text)
    return found


def _coverage(options: argparse.Namespace, console: Console) -> int:
    options.cases = options.cases or 1000
    numbers = _numbers(options)
    reached = coverage.reached(track(numbers, console=console), torch.device(options.device))
    missing = sorted(set(overloads()) - reached)
    console.print(*missing, markup=False, highlight=False)
    console.print(f"{len(reached)} overloads reached, {len(missing)} not")
    return 0


def main() -> int:
    """Run one case, or many."""
    options, console = _options(), Console()
    if options.case is not None:
        return _one(options, console)
    if options.coverage:
        return _coverage(options, console)
    found = _many(options, console)
    unexplained = known.unexplained(found, known.read())
    if unexplained:
        console.print(report.table(unexplained))
    console.print(report.summary(found))
    console.print(f"{len(found)} cases, {len(unexplained)} differences that tests/fuzz/known does not explain")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
