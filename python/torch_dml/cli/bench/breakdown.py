"""`bench ops --breakdown`: where the host's time of one small operator goes."""

from __future__ import annotations

import datetime
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable
from ctypes import c_int32, c_uint64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from torch_dml import engine, loader
from torch_dml._version import __version__

# Calls between two synchronisations: a queue that is full would make the host wait for the device.
_CALLS = 1000
_WIDTH = 120

# Stages in the order in which a call passes them, and their descriptions. The engine measures those
# from "unpack" on.
STAGES = {
    "python": "Python",
    "dispatcher": "dispatcher",
    "unpack": "unpacking",
    "shape": "shape and dtype",
    "lookup": "kernel lookup",
    "allocate": "allocation",
    "enqueue": "enqueue",
    "record": "record",
    "submit": "submit",
}
# Stages of the submission thread, which run at the same time and are not part of the call's time.
BESIDE = {"record": "record, beside", "submit": "submit, beside"}

_Loop = Callable[[torch.Tensor, int], None]


@dataclass
class Split:
    """The host's time of one call, in microseconds."""

    name: str
    stages_us: dict[str, float]
    beside_us: dict[str, float]  # for each command that another thread recorded meanwhile; empty if there was none
    plain_us: float  # the whole call without measuring stages
    clock_us: float  # what reading the clock at both ends of a stage costs; subtracted from the stages

    @property
    def total_us(self) -> float:
        """The sum of the stages."""
        return sum(self.stages_us.values())


def _add(x: torch.Tensor, calls: int) -> None:
    for _ in itertools.repeat(None, calls):
        x + x


def _relu(x: torch.Tensor, calls: int) -> None:
    for _ in itertools.repeat(None, calls):
        x.relu()


def _addmm(x: torch.Tensor, calls: int) -> None:
    addmm = torch.addmm
    for _ in itertools.repeat(None, calls):
        addmm(x, x, x)


def _fill(x: torch.Tensor, calls: int) -> None:
    for _ in itertools.repeat(None, calls):
        x.fill_(1.0)


# The operator's name in the plugin, its description, the tensor's sizes, and the loop.
_CASES: list[tuple[str, str, tuple[int, ...], _Loop]] = [
    ("add", "x + x, 16 elements", (16,), _add),
    ("relu", "x.relu(), 16 elements", (16,), _relu),
    ("addmm", "addmm(x, x, x), 64x64", (64, 64), _addmm),
    ("fill", "x.fill_(1.0), 16 elements", (16,), _fill),
]


def run(device_name: str, *, quick: bool, target: str | None) -> int:
    """Measure, print a table, and write the results to `target`."""
    loader.load()
    device = torch.device(device_name)
    module = torch.get_device_module(device)
    console = Console()
    # In a narrow window the lines of a whole table are wrapped, instead of a table with truncated
    # names.
    console.width = max(console.width, _WIDTH)
    name = module.get_device_name(device)
    with console.status("breakdown ...") as status:
        splits = []
        for case in _CASES:
            status.update(f"breakdown: {case[1]}")
            splits.append(split(device, *case, rounds=5 if quick else 25))
    console.print(_table(splits))
    console.print(
        f"{name}, torch {torch.__version__}. Host time of one call in µs, median of rounds of {_CALLS} calls. "
        f"Reading the clock cost {splits[0].clock_us * 1e3:.0f} ns a stage, which is subtracted. "
        "record and submit happen once a batch: each call's share. beside: on the thread that submits.",
        highlight=False,
    )
    if target:
        report: dict[str, Any] = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "torch_dml": __version__,
            "torch": str(torch.__version__),
            "system": platform.platform(),
            "device": name,
            "unit": "µs",
            "operators": {
                each.name: {
                    "stages": each.stages_us,
                    "beside": each.beside_us,
                    "total": each.total_us,
                    "measuring off": each.plain_us,
                    "clock": each.clock_us,
                }
                for each in splits
            },
        }
        Path(target).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        console.print(f"Written to {target}")
    return 0


def split(device: torch.device, operator: str, name: str, sizes: tuple[int, ...], loop: _Loop, *, rounds: int) -> Split:
    """Measure how the time of a call is divided among stages.

    The engine measures its own stages and the time outside of them. If a loop in C++ makes the
    calls, the time outside is the dispatcher's; if Python makes them, what is outside in addition
    is Python's.
    """
    module = torch.get_device_module(device)
    index = device.index if device.index is not None else module.current_device()
    x = torch.rand(sizes).to(device)

    def from_python() -> None:
        loop(x, _CALLS)

    def from_cpp() -> None:
        if loader.plugin().dml_plugin_dispatch(operator.encode(), c_int32(index), c_uint64(_CALLS)) != 0:
            raise RuntimeError(f"the plugin's loop of {operator} failed")

    def measured(work: Callable[[], None]) -> dict[str, Any]:
        module.synchronize(device)
        engine.call("dml_measure_begin")
        work()
        result: dict[str, Any] = json.loads(engine.library().dml_measure_end_json())
        return result

    python: list[dict[str, Any]] = []
    cpp: list[dict[str, Any]] = []
    plain: list[float] = []
    for _ in range(rounds + 1):
        # Alternately, so that a slow phase of the machine affects both.
        python.append(measured(from_python))
        cpp.append(measured(from_cpp))
        module.synchronize(device)
        started = time.perf_counter()
        from_python()
        plain.append(time.perf_counter() - started)
    module.synchronize(device)

    def mean_us(runs: list[dict[str, Any]], stage: str) -> float:
        # The first round is for warming up.
        times: list[float] = [run["stages"][stage]["ns"] for run in runs[1:]]
        return statistics.median(times) / _CALLS / 1e3

    dispatcher_us = mean_us(cpp, "outside")
    stages = {"python": mean_us(python, "outside") - dispatcher_us, "dispatcher": dispatcher_us}
    stages |= {stage: mean_us(python, stage) for stage in STAGES if stage not in stages}
    clock_us = statistics.median(run["clock_ns"] for run in python) / 1e3
    helped = [run["beside"] for run in python[1:] if run["beside"]["commands"]]
    beside = {
        stage: statistics.median(each[stage] / each["commands"] for each in helped) / 1e3 for stage in BESIDE if helped
    }
    return Split(name, stages, beside, statistics.median(plain[1:]) / _CALLS * 1e6, clock_us)


def _table(splits: list[Split]) -> Table:
    table = Table(title="host time of one operator", title_justify="left")
    table.add_column("stage")
    for each in splits:
        table.add_column(each.name, justify="right")
    for stage, title in STAGES.items():
        table.add_row(title, *(f"{each.stages_us[stage]:.3f}" for each in splits))
    table.add_section()
    table.add_row("sum", *(f"{each.total_us:.3f}" for each in splits))
    table.add_row("with measuring off", *(f"{each.plain_us:.3f}" for each in splits))
    table.add_section()
    for stage, title in BESIDE.items():
        table.add_row(title, *(f"{each.beside_us[stage]:.3f}" if each.beside_us else "-" for each in splits))
    return table
