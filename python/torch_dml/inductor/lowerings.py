"""Operators that are not lowered to loops on the device, but called as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import ir, lowering
from torch._inductor.ir import TensorBox
from torch._inductor.virtualized import ops
from torch.utils._pytree import tree_leaves

from torch_dml.backend import DEVICE
from torch_dml.inductor.flex_attention.lowering import flex_attention, flex_attention_backward

aten = torch.ops.aten

# Which write to elements by index: several may write to one. Those whose order is a number of the
# host. And means over windows, whose sums Inductor would round after each element.
CALLED = [
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.avg_pool2d.default,
    aten.avg_pool2d_backward.default,
    aten.avg_pool3d.default,
    aten.avg_pool3d_backward.default,
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
        _replace(operator, lowering.fallback_handler(operator, add_to_fallback_set=False))
    _replace(torch.ops.higher_order.flex_attention, flex_attention)
    _replace(torch.ops.higher_order.flex_attention_backward, flex_attention_backward)
    _divide_by_numbers()
    _put_by_operator()
    _copy_at_once()


def _put_by_operator() -> None:
    """Let elements be put by the operator, in place, as in torch's deterministic mode."""
    put: Callable[..., Any] = lowering.index_put_impl_

    @functools.wraps(put)
    def index_put_impl_(self: Any, indices: Any, values: Any, accumulate: bool, *args: Any, **kwargs: Any) -> Any:
        masks = any(index is not None and index.get_dtype() in (torch.bool, torch.uint8) for index in indices)
        if masks or not is_on_device(self):
            return put(self, indices, values, accumulate, *args, **kwargs)
        if self.get_size():
            return lowering.index_put_fallback(self, indices, values, accumulate)
        scalar = lowering.view(self, [1])
        return lowering.view(lowering.index_put_fallback(scalar, indices, values, accumulate), [])

    lowering.index_put_impl_ = index_put_impl_


def _copy_at_once() -> None:
    """Let copies to the CPU be complete when they return, as the operator's into memory that is not
    pinned: Inductor would give them pinned memory and not wait.
    """
    create: Callable[..., Any] = ir.DeviceCopy.create.__func__

    def create_copy(cls: Any, x: Any, device: torch.device, non_blocking: bool) -> Any:
        source = x.get_device()
        leaves = source is not None and source.type == DEVICE and device.type == "cpu"
        return create(cls, x, device, non_blocking and not leaves)

    ir.DeviceCopy.create = classmethod(create_copy)


def _divide_by_numbers() -> None:
    """Let a division by a number be one, and not a product with a rounded reciprocal."""
    divide = lowering.div_prim

    @functools.wraps(divide)
    def div_prim(a: Any, b: Any) -> Any:
        floats = [lowering.is_integer_type(x) or lowering.is_boolean_type(x) for x in (a, b)].count(False)
        if floats and _meets_device((a, b)):
            return lowering.make_pointwise(lambda x, y: ops.truediv(x, y))(a, b)
        return divide(a, b)

    lowering.div_prim = div_prim
    _replace(torch.ops.prims.div.default, lambda *args: div_prim(*lowering.promote_constants(args)))


def _replace(operator: Any, instead: Callable[..., Any]) -> None:
    """Lower an operator by `instead` where a tensor is on the device."""
    lowered = lowering.lowerings.get(operator)
    if lowered is None:
        return

    @functools.wraps(lowered)
    def lower(*args: Any, **kwargs: Any) -> Any:
        return (instead if _meets_device((args, kwargs)) else lowered)(*args, **kwargs)

    lowering.lowerings[operator] = lower


def _meets_device(arguments: Any) -> bool:
    return any(isinstance(x, TensorBox) and is_on_device(x) for x in tree_leaves(arguments))


def is_on_device(box: TensorBox) -> bool:
    """Return whether a graph's tensor is on the device."""
    device = box.get_device()
    return device is not None and device.type == DEVICE
