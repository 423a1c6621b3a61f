"""Compiles functions, and fails if a graph was not compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile one graph by the default backend; a warning that it runs operator by operator is an
    error.
    """
    compile_once = torch.compile(function, fullgraph=True, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="torch-dml cannot compile")
            return compile_once(*args, **kwargs)

    return call


def same_bits(left: Any, right: Any) -> bool:
    """Whether tensors, or tuples of them, have the same dtypes, sizes and elements; NaN is NaN."""
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same_bits, left, right))
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    one, other = left.detach().cpu(), right.detach().cpu()
    return bool(((one == other) | ((one != one) & (other != other))).all())
