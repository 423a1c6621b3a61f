"""Compiles functions, and compares results by their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile one graph by the default backend. The warning that a graph runs operator by operator
    is an error in all tests: see `filterwarnings` in pyproject.toml.
    """
    return torch.compile(function, fullgraph=True, **options)


def same_bits(left: Any, right: Any) -> bool:
    """Whether tensors, or tuples of them, have the same dtypes, sizes and elements; NaN is NaN."""
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same_bits, left, right))
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    one, other = left.detach().cpu(), right.detach().cpu()
    return bool(((one == other) | ((one != one) & (other != other))).all())
