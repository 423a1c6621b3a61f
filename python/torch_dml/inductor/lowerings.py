"""Operators that are not lowered to loops on the device, but called as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import lowering
from torch._inductor.ir import TensorBox
from torch._inductor.virtualized import ops
from torch.utils._pytree import tree_leaves

from torch_dml.backend import DEVICE
from torch_dml.inductor.errors import MissingKernelError

aten = torch.ops.aten

# Which write to elements by index: several may write to one.
CALLED = [
    aten.index_put.default,
    aten.index_put_.default,
    aten._unsafe_index_put.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.polygamma.default,
    aten.special_polygamma.default,
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
    for operator in (torch.ops.higher_order.flex_attention, torch.ops.higher_order.flex_attention_backward):
        if operator in lowering.lowerings:
            lowering.lowerings[operator] = _refused(operator, lowering.lowerings[operator])
    _divide_by_numbers()


def _refused(operator: Any, lowered: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(lowered)
    def lower(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, TensorBox) and is_on_device(x) for x in args):
            raise MissingKernelError(str(operator))
        return lowered(*args, **kwargs)

    return lower


def _divide_by_numbers() -> None:
    """Let a division by a number be one, and not a product with a rounded reciprocal."""
    divide = lowering.div_prim

    @functools.wraps(divide)
    def div_prim(a: Any, b: Any) -> Any:
        floats = [lowering.is_integer_type(x) or lowering.is_boolean_type(x) for x in (a, b)].count(False)
        if floats and any(isinstance(x, TensorBox) and is_on_device(x) for x in (a, b)):
            return lowering.make_pointwise(lambda x, y: ops.truediv(x, y))(a, b)
        return divide(a, b)

    lowering.div_prim = div_prim
    divided = lowering.lowerings[torch.ops.prims.div.default]

    @functools.wraps(divided)
    def lower(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, TensorBox) and is_on_device(x) for x in args):
            return div_prim(*lowering.promote_constants(args))
        return divided(*args, **kwargs)

    lowering.lowerings[torch.ops.prims.div.default] = lower


def _diverted(operator: Any, lowered: Callable[..., Any]) -> Callable[..., Any]:
    called = lowering.fallback_handler(operator, add_to_fallback_set=False)

    @functools.wraps(lowered)
    def lower(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, TensorBox) and is_on_device(x) for x in tree_leaves((args, kwargs))):
            return called(*args, **kwargs)
        return lowered(*args, **kwargs)

    return lower


def is_on_device(box: TensorBox) -> bool:
    """Return whether a graph's tensor is on the device."""
    device = box.get_device()
    return device is not None and device.type == DEVICE
