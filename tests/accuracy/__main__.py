"""Measure the errors of functions, reductions and products, and write the table of
docs/reference/numerics.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import page
from .subjects import AGGREGATES, FUNCTIONS, Aggregate, Function
from .trial import DTYPES, Row, Settings, measure

ROOT = Path(__file__).resolve().parents[2]
NAMES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}


def _dtypes(text: str) -> tuple[torch.dtype, ...]:
    return tuple(NAMES[name] for name in text.split(","))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--operators", default="", metavar="REGEX", help="those whose name has a match; writes nothing")
    parser.add_argument("--dtypes", type=_dtypes, default=DTYPES, metavar="A,B", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--points", type=int, default=Settings.points, metavar="N", help="of a function (default: %(default)s)"
    )
    parser.add_argument(
        "--exact-points",
        type=int,
        default=Settings.exact_points,
        metavar="N",
        help="of a function in float64, beside mpmath's (default: %(default)s)",
    )
    page = ROOT / "docs" / "reference" / "numerics.md"
    parser.add_argument("--page", type=Path, default=page, help="with the table's place")
    return parser.parse_args()


def main() -> int:
    """Measure; write the table if everything was measured."""
    options, console = _options(), Console()
    devices = ("dml", "cpu", "cuda") if torch.cuda.is_available() else ("dml", "cpu")
    settings = Settings(devices, options.points, options.exact_points)
    everything: list[Function | Aggregate] = [*FUNCTIONS, *AGGREGATES]
    subjects = [subject for subject in everything if re.search(options.operators, subject.name)]
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[name]}")),
    )
    rows: list[Row] = []
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("errors", total=len(subjects) * len(options.dtypes), name="")
        for subject in subjects:
            for dtype in options.dtypes:
                progress.update(bar, name=subject.name)
                row = measure(subject, dtype, settings)
                rows.append(row)
                progress.advance(bar)
                if row.is_worse or options.operators:
                    errors = ", ".join(f"{device} {error}" for device, error in row.errors.items())
                    progress.console.print(f"{row.name} {dtype}: {errors}", markup=False, highlight=False)
    if options.operators or options.dtypes != DTYPES:
        return 0
    adapter = torch.get_device_module("dml").get_device_name(0)
    page.write(options.page, page.render(rows, adapter, settings))
    console.print(f"{options.page} has the table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
