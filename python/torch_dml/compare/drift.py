"""The drift of the weights, and how much of it is chaos: for that, the CPU also runs with weights
changed by one ulp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from torch_dml.compare.lanes import Shadows
from torch_dml.compare.report import Drift

# A device adds in another order than the CPU. Its run may be this many times as far from float64 as
# the CPU's are.
ALLOWED = 16.0
# Lower bound of what is allowed, relative to a parameter's norm: one float32 rounding in each step.
ROUNDING = 2.0**-22


def after(step: int, weights: Iterable[tuple[str, torch.Tensor]], device: str, shadows: list[Shadows]) -> Drift:
    """Compare the weights of every run with those in float64, which is the first of the shadows."""
    squares: dict[str, float] = {}
    size, furthest, excess = 0.0, "", 0.0
    for name, weight in weights:
        exact = shadows[0].of(weight)
        runs = {device: weight.detach().cpu()} | {one.lane.name: one.of(weight).cpu() for one in shadows[1:]}
        own = {run: _square(value, exact) for run, value in runs.items()}
        for run, value in own.items():
            squares[run] = squares.get(run, 0.0) + value
        square = _square(exact, torch.zeros((), dtype=exact.dtype))
        size += square
        # The optimizer may move a parameter that started at zero by amounts that its own norm does
        # not bound.
        explained = max([value for run, value in own.items() if run != device], default=0.0)
        floor = max(square, weight.numel() * 1e-6) * (ROUNDING * step) ** 2
        beyond = math.sqrt(own[device] / max(explained, floor)) if math.isfinite(own[device]) else math.inf
        if beyond > excess:
            furthest, excess = name, beyond
    return Drift(
        step, {run: math.sqrt(value / size) if size else 0.0 for run, value in squares.items()}, furthest, excess
    )


def _square(value: torch.Tensor, exact: torch.Tensor) -> float:
    both = torch.broadcast_tensors(value.detach(), exact.detach().cpu())
    total = 0.0
    for one, other in zip(both[0].flatten().split(1 << 20), both[1].flatten().split(1 << 20), strict=True):
        total += float((one.double() - other.double()).square().sum())
    return total if not math.isnan(total) else math.inf
