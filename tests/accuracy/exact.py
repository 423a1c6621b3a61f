"""Reference results: in float64, and for float64 in higher precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy
import torch

from .measure import Exact

# Precision of mpmath's numbers.
BITS = 240


def of_function(function: Callable[..., Any], inputs: list[torch.Tensor]) -> Exact:
    """The values of a function of mpmath's numbers, at points in float64; NaN where it is
    undefined.
    """
    high, low = [], []
    with mpmath.workprec(BITS):
        for point in zip(*(values.tolist() for values in inputs), strict=True):
            try:
                value = mpmath.mpf(function(*(mpmath.mpf(x) for x in point)))
            except (ValueError, ZeroDivisionError, TypeError, OverflowError, mpmath.libmp.NoConvergence):
                value = mpmath.nan
            high.append(float(value))
            low.append(float(value - high[-1]) if mpmath.isfinite(value) and abs(high[-1]) < 1e308 else 0.0)
    return Exact(torch.tensor(high, dtype=torch.float64), torch.tensor(low, dtype=torch.float64))


def of_wide(values: Any) -> Exact:
    """Values of numpy's longdouble, which has at least 64 bits of significand on x86-64."""
    wide = numpy.asarray(values)
    high = wide.astype(numpy.float64)
    return Exact(torch.tensor(high), torch.tensor((wide - high).astype(numpy.float64)))


def wide(tensor: torch.Tensor) -> Any:
    """A tensor as an array of longdoubles."""
    return tensor.double().numpy().astype(numpy.longdouble)
