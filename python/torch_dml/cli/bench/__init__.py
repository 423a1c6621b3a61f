"""`bench`: named suites on dml and on every other available device, in one process, with ratios."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import torch_dml
from torch_dml._version import __version__
from torch_dml.cli.bench import (
    attention,
    compiled,
    convolution,
    fft,
    graph,
    linalg,
    linear,
    matmul,
    models,
    ops,
    rows,
    sparse,
    train,
)
from torch_dml.cli.bench.measure import Bench, Row, means
from torch_dml.cli.bench.peaks import Peak, peak

_SUITES: dict[str, Callable[[Bench], list[Row]]] = {
    "ops": ops.run,
    "matmul": matmul.run,
    "train": train.run,
    "graph": graph.run,
    "compile": compiled.run,
    "conv": convolution.run,
    "attention": attention.run,
    "rows": rows.run,
    "models": models.run,
    "fft": fft.run,
    "sparse": sparse.run,
    "linear": linear.run,
    "linalg": linalg.run,
}
# Results are written to disk at most this many seconds after they were measured.
_WRITE_EVERY_S = 2.0


def run(suites: list[str], names: list[str] | None, *, quick: bool, limit: float, target: str | None) -> int:
    """Run suites, print a table for each, and write the results to `target`."""
    # So that float32 is float32 on every device: cuDNN's convolutions would use TF32, whose
    # significand has 10 bits.
    torch.backends.cudnn.allow_tf32 = False
    wanted = names or ["dml", "cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    # Once a PrivateUse1 backend is registered, PyTorch's autograd engine has no streams for CUDA
    # and its backward fails (pytorch/pytorch issue 161129). So CUDA is measured first.
    first = [] if torch_dml.is_loaded() else [torch.device(name) for name in wanted if name.startswith("cuda")]
    console = Console()
    report = _Report(target, quick)
    for suite in suites if first else []:
        _measure(console, report, suite, first, quick, limit)
    if any(name.startswith("dml") for name in wanted):
        torch_dml.load()  # makes the name known to torch.device
        torch.get_device_module("dml").init()
    devices = [torch.device(name) for name in wanted]
    report.described = {str(device): describe(device) for device in devices}
    for name, text in report.described.items():
        console.print(f"{name:6} {text}", highlight=False)
    for suite in suites:
        _measure(console, report, suite, [device for device in devices if device not in first], quick, limit)
        found = report.rows(suite)
        console.print(_table(suite, found, devices, peak(report.described[str(devices[0])])))
        for text in _means(found, devices):
            console.print(text, highlight=False)
    if torch_dml.is_loaded():
        report.fallbacks = torch_dml.fallbacks()
        for name, count in report.fallbacks.items():
            console.print(f"[yellow]{name} fell back to the CPU {count} times: its figures are not the device's.[/]")
    if target:
        report.write()
        console.print(f"Written to {target}")
    return 0


class _Report:
    """All results so far, and the file to which they are written, so that a run that is stopped
    keeps them.
    """

    def __init__(self, target: str | None, quick: bool) -> None:
        self.described: dict[str, str] = {}
        self.fallbacks: dict[str, int] | None = None
        self._target = None if target is None else Path(target)
        self._quick = quick
        self._date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self._suites: dict[str, dict[str, Row]] = {}
        self._written = time.monotonic()

    def add(self, suite: str, row: Row) -> None:
        """Add a row, with the results that an earlier run of the suite left for other devices."""
        known = self._suites.setdefault(suite, {}).setdefault(row.name, dataclasses.replace(row, values={}))
        known.values.update(row.values)

    def found(self, suite: str, row: Row) -> None:
        """Update a row that just got a result."""
        self.add(suite, row)
        if self._target and time.monotonic() - self._written > _WRITE_EVERY_S:
            self.write()

    def rows(self, suite: str) -> list[Row]:
        """Return a suite's rows, with the devices in the requested order."""
        order = list(self.described)
        rows = list(self._suites.get(suite, {}).values())
        for row in rows:
            place = {name: i for i, name in enumerate(order)}
            row.values = dict(sorted(row.values.items(), key=lambda item: place.get(item[0], len(place))))
        return rows

    def write(self) -> None:
        """Write the file."""
        if self._target is None:
            return
        report: dict[str, Any] = {
            "date": self._date,
            "torch_dml": __version__,
            "torch": str(torch.__version__),
            "system": platform.platform(),
            "devices": self.described,
            "quick": self._quick,
            "suites": {suite: [row.as_dict() for row in self.rows(suite)] for suite in self._suites},
            "means": {suite: self._means(suite) for suite in self._suites},
        }
        if self.fallbacks is not None:
            report["fallbacks"] = self.fallbacks
        beside = self._target.with_name(self._target.name + ".part")
        beside.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        os.replace(beside, self._target)
        self._written = time.monotonic()

    def _means(self, suite: str) -> dict[str, list[dict[str, Any]]]:
        first, *others = list(self.described) or [""]
        rows = self.rows(suite)
        return {other: [dataclasses.asdict(mean) for mean in means(rows, first, other)] for other in others}


def describe(device: torch.device) -> str:
    """Return the name of a device; for the CPU with its number of threads."""
    if device.type == "cpu":
        return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    module = torch.get_device_module(device)
    name = str(module.get_device_name(device))
    if device.type == "dml":
        properties = module.get_device_properties(device)
        return f"{name}, {properties.driver} {properties.driver_info}, Vulkan {properties.api_version}"
    return f"{name}, CUDA {torch.version.cuda}"


def _measure(
    console: Console, report: _Report, suite: str, devices: list[torch.device], quick: bool, limit: float
) -> None:
    with console.status(f"{suite} ...") as status:

        def tell(text: str) -> None:
            status.update(f"{suite}: {text}")
            if not console.is_terminal:  # there is no status line, and a stopped run would have printed nothing
                console.print(f"{suite}: {text}", highlight=False)

        bench = Bench(devices, quick, limit, tell, lambda row: report.found(suite, row))
        for row in _SUITES[suite](bench):
            report.add(suite, row)


def _means(rows: list[Row], devices: list[torch.device]) -> list[str]:
    """Return a line for each group of rows and each other device."""
    first, *others = [str(device) for device in devices]
    return [
        f"{mean.group}: geometric mean of {mean.count} ratios to {other} {mean.ratio:.3f}; "
        f"the least {mean.least:.2f}, {mean.worst}"
        for other in others
        for mean in means(rows, first, other)
    ]


def _table(suite: str, rows: list[Row], devices: list[torch.device], most: Peak | None) -> Table:
    table = Table(title=suite, title_justify="left")
    table.add_column("what")
    table.add_column("unit")
    for device in devices:
        table.add_column(str(device), justify="right")
    first, *others = [str(device) for device in devices]
    for other in others:
        table.add_column(f"{first} is x times {other}", justify="right")
    bounded = most is not None and any(row.bound for row in rows)
    if bounded:
        table.add_column(f"{first}, of its peak", justify="right")
    for row in rows:
        cells = [_figure(row.values.get(str(device))) for device in devices]
        ratios = [row.speedup(first, other) for other in others]
        shares = [_share(row.values.get(first), most.of(row.bound))] if bounded and most is not None else []
        table.add_row(
            row.name, row.unit, *cells, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios), *shares
        )
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: float | None, most: float | None) -> str:
    return f"{value / most:.0%}" if value and most else "-"
