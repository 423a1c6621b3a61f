"""`--parallel auto`: how many arms a machine simulates best, found by measuring."""

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
"""How much of the free memory a run may take."""
GAIN = 1.15
"""How many times faster twice the arms must be: more arms mean fewer updates for the same steps."""
SECONDS = 20.0
"""After which no larger number is tried."""
FIRST = {"device": 256, "overlapped": 8, "sb3": 2}
MOST = {"device": 32768, "overlapped": 1024, "sb3": 64}


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a number of arms costs and brings."""

    arms: int
    speed: float
    """Control steps a second, learning included."""
    memory: int
    """Bytes at the most."""


def choose(settings: Settings, tell: Callable[[str], None]) -> int:
    """Return a number of arms for settings that leave it open; `tell` is given a line on each that
    was measured.
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
    """Return the number of arms, from `first` by doubling to `most`, beyond which it is no longer
    worth it.

    A number is tried only if the two before let expect that it fits into `memory`, in bytes.
    """
    chosen = measure(first)
    tell(_line(chosen))
    begun = time.monotonic()  # the first also paid for what is imported and compiled once
    expected = chosen.memory  # what it grows by is not known before the second
    while 2 * chosen.arms <= most and expected <= memory and time.monotonic() - begun < SECONDS:
        try:
            tried = measure(2 * chosen.arms)
        except DeviceError:
            break
        tell(_line(tried))
        if tried.speed < GAIN * chosen.speed:
            break
        # Memory grows by so much for each arm, and begins with what does not depend on them.
        expected = tried.memory + 2 * max(0, tried.memory - chosen.memory)
        chosen = tried
    return chosen.arms


def _measure(settings: Settings, device: torch.device) -> Measured:
    trainer = make_trainer(settings)
    try:
        with devices.told(device):
            devices.peak_memory(device, reset=True)
            for _ in range(2):  # what is compiled, made or captured once
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
