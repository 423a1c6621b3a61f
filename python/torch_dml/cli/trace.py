"""`trace`: runs a script under torch.profiler and writes the activity of the host and the devices,
for a trace viewer.
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import torch_dml
from torch_dml.cli.script import program


@dataclass
class Kernel:
    """The total time of one kernel."""

    name: str
    runs: int = 0
    total_ns: int = 0
    longest_ns: int = 0


def run(script: str, arguments: Sequence[str], *, module: bool, target: str, stacks: bool, rows: int) -> int:
    """Run a script (or a module) as `python` would, write the trace, and return the script's exit
    status.
    """
    torch_dml.load()
    console = Console(file=sys.stderr)
    script_program = program(script, arguments, module=module)
    profiler = profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], record_shapes=True, with_stack=stacks
    )
    with warnings.catch_warnings():
        # Not relevant, since there is one cycle.
        warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle")
        profiler.start()
    started = time.perf_counter()
    try:
        status = _exit_status(script_program)
    finally:
        seconds = time.perf_counter() - started
        profiler.stop()
    profiler.export_chrome_trace(target)
    console.print(_table(kernels(profiler), seconds, rows))
    console.print(f"Trace of {seconds:.2f} s in {target}: open it in https://ui.perfetto.dev or chrome://tracing")
    return status


def kernels(profiler: profile) -> list[Kernel]:
    """Return the kernels that ran on the devices, sorted by total time."""
    found: dict[str, Kernel] = {}
    results: Any = profiler.profiler and profiler.profiler.kineto_results
    for event in results.events() if results else ():
        if event.device_type() == DeviceType.PrivateUse1 and event.name().startswith("dml::"):
            kernel = found.setdefault(event.name(), Kernel(event.name()))
            kernel.runs += 1
            kernel.total_ns += event.duration_ns()
            kernel.longest_ns = max(kernel.longest_ns, event.duration_ns())
    return sorted(found.values(), key=lambda kernel: -kernel.total_ns)


def _exit_status(script_program: Callable[[], object]) -> int:
    """Run the script to its end, and return what the process's exit status would be: a script that
    fails is traced too.
    """
    try:
        script_program()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _table(found: list[Kernel], seconds: float, rows: int) -> Table:
    total = sum(kernel.total_ns for kernel in found)
    runs = sum(kernel.runs for kernel in found)
    table = Table(
        title=f"{runs:,} kernels and copies kept the devices busy for {total / 1e6:,.2f} ms "
        f"({total / 1e9 / seconds:.0%} of the time)",
        title_justify="left",
    )
    table.add_column("kernel")
    for title in ("runs", "total ms", "mean µs", "longest µs", "share"):
        table.add_column(title, justify="right")
    for kernel in found[:rows]:
        table.add_row(
            kernel.name,
            f"{kernel.runs:,}",
            f"{kernel.total_ns / 1e6:,.3f}",
            f"{kernel.total_ns / kernel.runs / 1e3:,.1f}",
            f"{kernel.longest_ns / 1e3:,.1f}",
            f"{kernel.total_ns / total:.1%}",
        )
    if len(found) > rows:
        rest = found[rows:]
        rest_ns = sum(kernel.total_ns for kernel in rest)
        table.add_row(
            f"{len(rest)} more",
            f"{sum(kernel.runs for kernel in rest):,}",
            f"{rest_ns / 1e6:,.3f}",
            "",
            "",
            f"{rest_ns / total:.1%}",
        )
    return table
