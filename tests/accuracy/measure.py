"""The distance of results from exact ones, in units in the last place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
import torch


@dataclass(frozen=True)
class Exact:
    """Exact results as sums of two float64, of which the second is smaller than the first's last
    place.
    """

    high: torch.Tensor
    low: torch.Tensor | None = None

    def distance(self, got: torch.Tensor) -> torch.Tensor:
        """The distance of numbers from the exact results."""
        difference = got.double() - self.high
        return (difference if self.low is None else difference - self.low).abs()


@dataclass(frozen=True)
class Error:
    """The maximum and the mean of some errors, in units; the maximum is infinite if a result is
    NaN.
    """

    worst: float
    mean: float

    def __str__(self) -> str:
        """The cell of the table."""
        return "exact" if self.worst == 0 else f"{_short(self.worst)} / {_short(self.mean)}"


def _short(value: float) -> str:
    if not math.isfinite(value) or value >= 1e5:
        return f"{value:.0e}".replace("e+0", "e") if math.isfinite(value) else "∞"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def in_places(got: torch.Tensor, exact: Exact) -> Error:
    """Errors in units in the last place of each exact result; results outside of the range of
    normal numbers do not count.
    """
    info = torch.finfo(got.dtype)
    size = exact.high.abs()
    counts = (size < info.max) & ((size >= info.tiny) | (size == 0))
    _, exponent = torch.frexp(size)
    unit = torch.from_numpy(numpy.ldexp(info.eps / 2, exponent.numpy()))
    unit = torch.where(size == 0, info.tiny * info.eps, unit)
    return _error(exact.distance(got) / unit, counts)


def by_norm(got: torch.Tensor, exact: Exact) -> Error:
    """Errors in epsilons of the root mean square of all exact results, for results of
    cancellation.
    """
    unit = torch.finfo(got.dtype).eps * exact.high.square().mean().sqrt()
    return _error(exact.distance(got) / unit, torch.isfinite(exact.high))


def _error(errors: torch.Tensor, counts: torch.Tensor) -> Error:
    found = errors[counts]
    if not found.numel():
        return Error(0.0, 0.0)
    found = found.nan_to_num(nan=math.inf, posinf=math.inf)
    return Error(found.max().item(), found.mean().item())
