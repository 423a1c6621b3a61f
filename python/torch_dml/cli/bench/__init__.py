"""`bench`: named suites on dml and on every other device present, in one process, with ratios."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import torch_dml
from torch_dml._version import __version__
from torch_dml.cli.bench import attention, convolution, fft, graph, matmul, models, ops, rows, sparse, train
from torch_dml.cli.bench.measure import Bench, Row
from torch_dml.cli.bench.peaks import Peak, peak

_SUITES: dict[str, Callable[[Bench], list[Row]]] = {
    "ops": ops.run,
    "matmul": matmul.run,
    "train": train.run,
    "graph": graph.run,
    "conv": convolution.run,
    "attention": attention.run,
    "rows": rows.run,
    "models": models.run,
    "fft": fft.run,
    "sparse": sparse.run,
}


def run(suites: list[str], names: list[str] | None, *, quick: bool, limit: float, target: str | None) -> int:
    """Run suites, print a table each, and write the figures to `target`."""
    # float32 is float32 on every device: cuDNN's convolutions would use TF32, which has 10 bits of significand.
    torch.backends.cudnn.allow_tf32 = False
    wanted = names or ["dml", "cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    # Once a PrivateUse1 backend is registered, PyTorch's autograd engine has no streams for CUDA and its backward fails
    # (pytorch/pytorch issue 161129). So CUDA is measured first.
    first = [] if torch_dml.is_loaded() else [torch.device(name) for name in wanted if name.startswith("cuda")]
    console = Console()
    early = {suite: _measure(console, suite, first, quick, limit) for suite in suites} if first else {}
    if any(name.startswith("dml") for name in wanted):
        torch_dml.load()  # makes the name known to torch.device
        torch.get_device_module("dml").init()
    devices = [torch.device(name) for name in wanted]
    described = {str(device): describe(device) for device in devices}
    for name, text in described.items():
        console.print(f"{name:6} {text}", highlight=False)
    report: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "torch_dml": __version__,
        "torch": str(torch.__version__),
        "system": platform.platform(),
        "devices": described,
        "quick": quick,
        "suites": {},
    }
    for suite in suites:
        found = _measure(console, suite, [device for device in devices if device not in first], quick, limit)
        for row, before in zip(found, early.get(suite, []), strict=False):
            row.values.update(before.values)
        console.print(_table(suite, found, devices, peak(described[str(devices[0])])))
        report["suites"][suite] = [row.as_dict() for row in found]
    if torch_dml.is_loaded():
        report["fallbacks"] = torch_dml.fallbacks()
        for name, count in report["fallbacks"].items():
            console.print(f"[yellow]{name} fell back to the CPU {count} times: its figures are not the device's.[/]")
    if target:
        Path(target).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        console.print(f"Written to {target}")
    return 0


def describe(device: torch.device) -> str:
    """Return the name of a device, with what computes on the CPU."""
    if device.type == "cpu":
        return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    module = torch.get_device_module(device)
    name = str(module.get_device_name(device))
    if device.type == "dml":
        properties = module.get_device_properties(device)
        return f"{name}, {properties.driver} {properties.driver_info}, Vulkan {properties.api_version}"
    return f"{name}, CUDA {torch.version.cuda}"


def _measure(console: Console, suite: str, devices: list[torch.device], quick: bool, limit: float) -> list[Row]:
    with console.status(f"{suite} ...") as status:

        def tell(text: str) -> None:
            status.update(f"{suite}: {text}")
            if not console.is_terminal:  # where no status is seen, a run that is stopped has said what it found
                console.print(f"{suite}: {text}", highlight=False)

        return _SUITES[suite](Bench(devices, quick, limit, tell))


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
