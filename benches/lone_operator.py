"""Latency of a single operator when the host does nothing after it: no wait, no read-back, no
further operator.

    python benches/lone_operator.py --json lone.json

Measured from the operator's call to its kernel's start by the device's clock, as torch.profiler
maps it to the host's clock. Before each call the device is idle: for a short time, so that the
submitting thread is still awake, or for a long time. CUDA, which submits in the call, is measured
before dml is registered.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

PAUSES_MS = (0.3, 3.0, 30.0)
GOAL_US = 100


def delays(device: str, pause_s: float, times: int) -> list[float]:
    """Return microseconds from the call to the kernel's start, for each of `times` calls."""
    module = torch.get_device_module(device)
    x = torch.ones(16, device=device)
    for _ in range(10):
        x.sin()
    module.synchronize()
    theirs, activity = {
        "cuda": (DeviceType.CUDA, ProfilerActivity.CUDA),
        "dml": (DeviceType.PrivateUse1, ProfilerActivity.PrivateUse1),
    }[device]
    with profile(activities=[ProfilerActivity.CPU, activity]) as profiler:
        for _ in range(times):
            time.sleep(pause_s)
            x.sin()
        time.sleep(max(pause_s, 0.02))
    events = profiler.profiler.kineto_results.events()
    called = sorted(e.start_ns() for e in events if e.name() == "aten::sin")
    ran = sorted(e.start_ns() for e in events if e.device_type() == theirs and "sync" not in e.name().lower())
    if len(called) != len(ran):
        raise RuntimeError(f"{len(called)} calls and {len(ran)} kernels on {device}")
    return [(end - start) / 1000 for start, end in zip(called, ran, strict=True)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="operators per line (default: 200)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    arguments = parser.parse_args()

    table = Table(title=f"µs from the call of a lone operator to its run (dml's goal: {GOAL_US})", title_justify="left")
    for column in ("device", "idle before", "median", "90 %", "worst"):
        table.add_column(column, justify="right")
    figures = []
    for device in [*(["cuda"] if torch.cuda.is_available() else []), "dml"]:
        if device == "dml":
            import torch_dml

            torch_dml.load()
        name = torch.get_device_module(device).get_device_name(0)
        for pause_ms in PAUSES_MS:
            taken = sorted(delays(device, pause_ms / 1000, arguments.times))
            row = {
                "median_us": statistics.median(taken),
                "p90_us": taken[len(taken) * 9 // 10],
                "worst_us": taken[-1],
            }
            figures.append({"device": device, "name": name, "idle_ms": pause_ms, "times": len(taken), **row})
            table.add_row(device, f"{pause_ms} ms", *(f"{value:,.0f}" for value in row.values()))
    Console().print(table)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
