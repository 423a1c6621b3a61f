"""How a result is measured: warm-up, several repeats, the median; and a limit for what would take
too long.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Work = Callable[[], Any]

# Unless a suite chooses the number of calls, a repeat is as many calls as take this time: waiting
# for the device (about 30 µs, which would be added to single calls of 0.1 ms) is then small in
# comparison, and hundreds of results take minutes.
_REPEAT_S = 0.005


@dataclass
class Row:
    """One measurement, on every device."""

    name: str
    unit: str
    more_is_better: bool
    values: dict[str, float] = field(default_factory=dict)
    bound: str = ""  # the adapter's peak that limits it: "float32", "half", "memory"
    group: str = ""  # the ratios of rows in a group have a geometric mean

    def speedup(self, one: str, other: str) -> float | None:
        """Return the speed of `one` divided by that of `other`; None if the row is not a speed or
        was skipped.
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
    """The mean ratio of a group of rows."""

    group: str
    ratio: float  # the geometric mean
    count: int
    worst: str  # the row with the smallest ratio
    least: float


def means(rows: list[Row], one: str, other: str) -> list[Mean]:
    """Return the mean ratio of the speeds of `one` and `other` in each group, over the rows that
    have results for both.
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
    """The settings of a suite's run."""

    devices: list[torch.device]
    quick: bool
    limit_s: float
    tell: Callable[[str], None]
    found: Callable[[Row], None] = lambda _: None  # called when a row got a result

    @property
    def repeats(self) -> int:
        """Number of repeats of which the median is taken."""
        return 3 if self.quick else 7

    def take(self, row: Row, device: torch.device, work: Work, amount: float) -> None:
        """Measure `work`, of which one call processes `amount`, and store the amount per second in
        a row; nothing if it takes longer than the limit.
        """
        self.tell(f"{row.name} on {device}")
        seconds = self.seconds(device, work)
        if seconds is not None:
            self.put(row, device, amount / seconds)

    def put(self, row: Row, device: torch.device, value: float) -> None:
        """Store a result in a row, and report it."""
        row.values[str(device)] = value
        self.found(row)
        self.tell(f"{row.name} on {device}: {value:.4g} {row.unit}")

    def seconds(self, device: torch.device, work: Work, times: int | None = None) -> float | None:
        """Return the seconds that one call of `work` takes when it is called `times` times in a
        row; None if over the limit.

        If `times` is None, a repeat has as many calls as make it long enough. After the limit there
        are no more repeats.
        """
        least = times or 1
        # The first call may have compiled kernels.
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
        """Return the time of one call: until it returns, and until the device has finished all
        calls.
        """
        _timed(device, work, 1)
        if _timed(device, work, 100)[1] * times / 100 > self.limit_s:
            return None
        taken = [_timed(device, work, times) for _ in range(self.repeats)]
        host, total = (statistics.median(column) / times for column in zip(*taken, strict=True))
        return host, total


def synchronize(device: torch.device) -> None:
    """Wait for a device; not needed for the CPU."""
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
