"""Operators that are not lowered to loops on the device, but called as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import lowering
from torch._inductor.ir import TensorBox
from torch.utils._pytree import tree_leaves

from torch_dml.backend import DEVICE

aten = torch.ops.aten

# Which write to elements by index: several may write to one.
CALLED = [
    aten.index_put.default,
    aten.index_put_.default,
    aten._unsafe_index_put.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter.reduce,
    aten.scatter.value_reduce,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
]


def install() -> None:
    """Call these operators where a tensor is on the device; elsewhere nothing changes."""
    for operator in CALLED:
        lowered = lowering.lowerings.get(operator)
        if lowered is not None:
            lowering.lowerings[operator] = _diverted(operator, lowered)


def _diverted(operator: Any, lowered: Callable[..., Any]) -> Callable[..., Any]:
    called = lowering.fallback_handler(operator, add_to_fallback_set=False)

    @functools.wraps(lowered)
    def lower(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, TensorBox) and _is_on_device(x) for x in tree_leaves((args, kwargs))):
            return called(*args, **kwargs)
        return lowered(*args, **kwargs)

    return lower


def _is_on_device(box: TensorBox) -> bool:
    device = box.get_device()
    return device is not None and device.type == DEVICE
