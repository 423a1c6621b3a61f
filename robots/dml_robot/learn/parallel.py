"""`--parallel auto`: the best number of arms for a machine, found by measuring."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import torch

from dml_robot import devices
from dml_robot.errors import DeviceError
from dml_robot.learn.settings import Settings
from dml_robot.learn.train import make_trainer

SHARE = 0.5
"""The fraction of the free memory that a run may use."""
GAIN = 1.15
"""The minimum speed-up from doubling the arms: more arms mean fewer updates for the same number of steps."""
SECONDS = 20.0
"""Time limit in seconds, after which no larger number is tried."""
FIRST = {"device": 256, "overlapped": 8, "sb3": 2}
MOST = {"device": 32768, "overlapped": 1024, "sb3": 64}


@dataclasses.dataclass(frozen=True)
class Measured:
    """Speed and memory of a number of arms."""

    arms: int
    speed: float
    """Control steps per second, learning included."""
    memory: int
    """Peak memory in bytes."""


def choose(settings: Settings, tell: Callable[[str], None]) -> int:
    """Return a number of arms for settings that leave it open; `tell` is called with a line for
    each measured number.
    """
    way = dataclasses.replace(settings, parallel=None).checked().way
    device = torch.device(settings.device)
    return best(
        lambda arms: _measure(dataclasses.replace(settings, parallel=arms).checked(), device),
        FIRST[way],
        MOST[way],
        int(SHARE * devices.free_memory(device)),
        tell,
    )


def best(measure: Callable[[int], Measured], first: int, most: int, memory: int, tell: Callable[[str], None]) -> int:
    """Return the number of arms: doubled from `first` up to `most` for as long as it pays.

    A number is tried only if, by the two before, it is expected to fit into `memory` bytes.
    """
    chosen = measure(first)
    tell(_line(chosen))
    begun = time.monotonic()  # the first measurement includes one-time imports and compilation
    expected = chosen.memory  # the growth is unknown before the second measurement
    while 2 * chosen.arms <= most and expected <= memory and time.monotonic() - begun < SECONDS:
        try:
            tried = measure(2 * chosen.arms)
        except DeviceError:
            break
        tell(_line(tried))
        if tried.speed < GAIN * chosen.speed:
            break
        # Memory is a constant plus an amount per arm.
        expected = tried.memory + 2 * max(0, tried.memory - chosen.memory)
        chosen = tried
    return chosen.arms


def _measure(settings: Settings, device: torch.device) -> Measured:
    trainer = make_trainer(settings)
    try:
        with devices.told(device):
            devices.peak_memory(device, reset=True)
            for _ in range(2):  # one-time work: compilation, allocation and capture
                trainer.iterate()
            before, begun = trainer.steps, time.perf_counter()
            trainer.iterate()
            devices.synchronize(device)
            speed = (trainer.steps - before) / (time.perf_counter() - begun)
            return Measured(settings.parallel or 1, speed, devices.peak_memory(device))
    finally:
        trainer.close()


def _line(measured: Measured) -> str:
    return f"{measured.arms} arms: {measured.speed:,.0f} steps/s, {measured.memory / 2**20:,.0f} MiB"
