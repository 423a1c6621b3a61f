"""How a figure is taken: warm-up, several repeats, the median; and a way out of what would take too
long.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Work = Callable[[], Any]

# As many calls in a row as take so long are a repeat where a suite does not say how many: what
# waiting for the device costs (some 30 µs, which single calls of 0.1 ms would be charged with) is
# then small beside them, and hundreds of figures take minutes.
_REPEAT_S = 0.005


@dataclass
class Row:
    """One thing measured, on every device."""

    name: str
    unit: str
    more_is_better: bool
    values: dict[str, float] = field(default_factory=dict)
    bound: str = ""  # the peak of an adapter that bounds it: "float32", "half", "memory"
    group: str = ""  # rows of one group have a geometric mean of their ratios

    def speedup(self, one: str, other: str) -> float | None:
        """Return how many times as fast `one` is as `other`; None for what is no speed or was
        skipped.
        """
        a, b = self.values.get(one), self.values.get(other)
        if not a or not b or self.unit == "error":
            return None
        return a / b if self.more_is_better else b / a

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON, with the ratio of the first device to each other."""
        first, *others = list(self.values) or [""]
        ratios = {other: self.speedup(first, other) for other in others}
        return {
            "name": self.name,
            "unit": self.unit,
            "more_is_better": self.more_is_better,
            "values": self.values,
            "speedup": {other: ratio for other, ratio in ratios.items() if ratio is not None},
        }


@dataclass(frozen=True)
class Mean:
    """What the ratios of a group of rows come to."""

    group: str
    ratio: float  # the geometric mean
    count: int
    worst: str  # the row with the least ratio
    least: float


def means(rows: list[Row], one: str, other: str) -> list[Mean]:
    """Return how many times as fast `one` is as `other` in each group, over the rows that have
    figures of both.
    """
    groups: dict[str, dict[str, float]] = {}
    for row in rows:
        ratio = row.speedup(one, other) if row.group else None
        if ratio is not None:
            groups.setdefault(row.group, {})[row.name] = ratio
    found = []
    for group, ratios in groups.items():
        worst = min(ratios, key=lambda name: ratios[name])
        mean = statistics.geometric_mean(ratios.values())
        found.append(Mean(group, mean, len(ratios), worst, ratios[worst]))
    return found


@dataclass
class Bench:
    """What a suite is run with."""

    devices: list[torch.device]
    quick: bool
    limit_s: float
    tell: Callable[[str], None]
    found: Callable[[Row], None] = lambda _: None  # called whenever a row got a figure

    @property
    def repeats(self) -> int:
        """Repeats of which the median is taken."""
        return 3 if self.quick else 7

    def take(self, row: Row, device: torch.device, work: Work, amount: float) -> None:
        """Put into a row what `work` reaches of `amount` a second; nothing when it takes longer
        than the limit.
        """
        self.tell(f"{row.name} on {device}")
        seconds = self.seconds(device, work)
        if seconds is not None:
            self.put(row, device, amount / seconds)

    def put(self, row: Row, device: torch.device, value: float) -> None:
        """Put a figure into a row, and tell it."""
        row.values[str(device)] = value
        self.found(row)
        self.tell(f"{row.name} on {device}: {value:.4g} {row.unit}")

    def seconds(self, device: torch.device, work: Work, times: int | None = None) -> float | None:
        """Return the seconds that `work` takes when it runs `times` times in a row; None when over
        the limit.

        As often as makes a repeat long enough where `times` is None. After the limit there are no
        more repeats.
        """
        least = times or 1
        # The first call may have compiled something.
        if _timed(device, work, 1)[1] * least > self.limit_s and _timed(device, work, 1)[1] * least > self.limit_s:
            return None
        if times is None:
            again = _timed(device, work, 1)[1]
            if again < _REPEAT_S:
                again = _timed(device, work, 3)[1] / 3
            times = max(1, min(1000, round(_REPEAT_S / max(again, 1e-6))))
        ends = time.perf_counter() + self.limit_s
        _timed(device, work, min(times, 10))
        taken: list[float] = []
        while not taken or (len(taken) < self.repeats and time.perf_counter() < ends):
            taken.append(_timed(device, work, times)[1] / times)
        return statistics.median(taken)

    def host_and_total(self, device: torch.device, work: Work, times: int) -> tuple[float, float] | None:
        """Return what one call costs: until it returns, and until the device has done all calls."""
        _timed(device, work, 1)
        if _timed(device, work, 100)[1] * times / 100 > self.limit_s:
            return None
        taken = [_timed(device, work, times) for _ in range(self.repeats)]
        host, total = (statistics.median(column) / times for column in zip(*taken, strict=True))
        return host, total


def synchronize(device: torch.device) -> None:
    """Wait for a device; the CPU is never behind."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def _timed(device: torch.device, work: Work, times: int) -> tuple[float, float]:
    synchronize(device)
    started = time.perf_counter()
    for _ in range(times):
        work()
    returned = time.perf_counter()
    synchronize(device)
    return returned - started, time.perf_counter() - started
