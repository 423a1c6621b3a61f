"""Run random functions compiled and as they are on the device, and print those that differ.

A case's number determines everything about it: `--case 12345` runs that one alone, and prints it.
The exit status is 1 if one differs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
import warnings

os.environ.setdefault("GALLIVM_PERF", "nopt")

import torch
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from tests.compile.random_graphs import Case, make, run, smallest


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.compile", description=__doc__)
    parser.add_argument("--case", type=int, metavar="N", help="run this case alone")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="for so long (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the first one's number (default: 0)")
    parser.add_argument("--device", default="dml", help="the device (default: %(default)s)")
    return parser.parse_args()


def _shown(case: Case, difference: str) -> str:
    inputs = ", ".join(f"{x.dtype} {tuple(x.shape)}" for x in case.inputs)
    options = f"dynamic={case.dynamic}, gradients={case.gradients}, exact={case.exact}"
    return f"case {case.number}: {difference}\n# {inputs}; {options}\n{case.text()}\n"


def main() -> int:
    """Run the cases."""
    options, console = _options(), Console(soft_wrap=True, markup=False, highlight=False)
    warnings.filterwarnings("error", message="torch-dml cannot compile")
    torch._dynamo.config.cache_size_limit = 64
    numbers = [options.case] if options.case is not None else itertools.count(options.start)
    end, found, count = time.monotonic() + options.seconds, 0, 0
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("")
        for number in numbers:
            if options.case is None and time.monotonic() > end:
                break
            case = make(number, options.device)
            difference = run(case)
            count += 1
            progress.update(bar, description=f"{count} cases, {found} differ")
            if difference is not None:
                found += 1
                least = smallest(case)
                progress.console.print(_shown(least, run(least) or difference))
            elif options.case is not None:
                progress.console.print(_shown(case, "no difference"))
    console.print(f"{count} cases from {options.start}, {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
