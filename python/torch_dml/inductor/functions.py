"""Operators that are one function of the engine's catalogue, and that Inductor would take apart:
each is a call of that function, so that it has the bits of the operator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import dtype_propagation, lowering, ops_handler, shape_propagation
from torch._inductor.ir import IRNode, TensorBox
from torch._inductor.virtualized import ops

from torch_dml.inductor.errors import MissingKernelError
from torch_dml.inductor.lowerings import is_on_device

aten = torch.ops.aten


# A function of the catalogue, and its operands.
Call = tuple[str, Sequence[Any]]
Of = Callable[..., Call | None]


def _gelu(function: str) -> Of:
    def of(*operands: Any, approximate: str = "none") -> Call:
        return (function.replace("gelu", "gelu_tanh") if approximate == "tanh" else function), operands

    return of


def _plain(function: str) -> Of:
    return lambda *operands: (function, operands)


def _elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Call:
    return "elu", (x, alpha, scale, input_scale)


def _elu_backward(grad: Any, alpha: float, scale: float, input_scale: float, is_result: bool, x: Any) -> Call:
    return "elu_backward_result" if is_result else "elu_backward", (grad, x, alpha, scale, input_scale)


def _sum(function: str) -> Of:
    def of(x: Any, y: Any, alpha: float = 1) -> Call | None:
        return None if alpha == 1 else (function, (x, y, alpha))

    return of


def _quotient(x: Any, y: Any, rounding_mode: str | None = None) -> Call | None:
    names = {"floor": "div_floor", "trunc": "div_trunc"}
    return (names[rounding_mode], (x, y)) if rounding_mode in names else None


# Powers with functions of their own, as the operator chooses them.
_POWERS = {0: "0", 1: "1", 2: "2", 3: "3", 0.5: "half", -1: "minus_1", -2: "minus_2", -0.5: "minus_half"}


def _power(x: Any, exponent: Any) -> Call | None:
    if not isinstance(exponent, int | float):
        return None
    return f"pow_{_POWERS[exponent]}" if exponent in _POWERS else "pow", (x, exponent)


def _nextafter(x: TensorBox, y: TensorBox) -> Call | None:
    names = {torch.float16: "nextafter_f16", torch.bfloat16: "nextafter_bf16"}
    return (names[x.get_dtype()], (x, y)) if x.get_dtype() in names else None


# The function and its operands, from the arguments of an operator of floats; None if it is left to
# Inductor.
FUNCTIONS: dict[Any, Of] = {
    aten.add.Tensor: _sum("add_alpha"),
    aten.addcdiv.default: lambda x, y, z, value=1: ("addcdiv", (x, y, z, value)),
    aten.addcmul.default: lambda x, y, z, value=1: ("addcmul", (x, y, z, value)),
    aten.div.Tensor_mode: _quotient,
    aten.elu.default: _elu,
    aten.elu_backward.default: _elu_backward,
    aten.gelu.default: _gelu("gelu"),
    aten.gelu_backward.default: _gelu("gelu_backward"),
    aten.hardsigmoid.default: _plain("hardsigmoid"),
    aten.hardsigmoid_backward.default: _plain("hardsigmoid_backward"),
    aten.hardswish.default: _plain("hardswish"),
    aten.hardswish_backward.default: _plain("hardswish_backward"),
    aten.leaky_relu_backward.default: lambda grad, x, slope, _: ("leaky_relu_backward", (x, grad, slope)),
    aten.mish.default: _plain("mish"),
    aten.mish_backward.default: _plain("mish_backward"),
    aten.nextafter.default: _nextafter,
    aten.pow.Tensor_Scalar: _power,
    aten.sigmoid_backward.default: _plain("sigmoid_backward"),
    aten.silu.default: _plain("silu"),
    aten.silu_backward.default: _plain("silu_backward"),
    aten.softplus.default: lambda x, beta=1, threshold=20: ("softplus", (x, beta, threshold)),
    aten.softplus_backward.default: _plain("softplus_backward"),
    aten.special_log_ndtr.default: _plain("log_ndtr"),
    aten.sub.Tensor: _sum("sub_alpha"),
    aten.tanh_backward.default: _plain("tanh_backward"),
}


def install() -> None:
    """Lower them to calls, and let Inductor know the operation `dml_call`."""
    for handler, result in (
        (dtype_propagation.DtypePropagationOpsHandler, _dtype),
        (shape_propagation.ShapePropagationOpsHandler, _shape),
        (ops_handler.DefaultHandler, _call),
    ):
        handler.dml_call = result
    for operator, of in FUNCTIONS.items():
        lowered = lowering.lowerings.get(operator)
        lower = _lowered(of, lowered)
        if lowered is None:
            lowering.register_lowering(operator, broadcast=False, type_promotion_kind=None)(lower)
        else:
            lowering.lowerings[operator] = lower


def _dtype(_: Any, *operands: Any, function: str, dtype: torch.dtype) -> torch.dtype:
    return dtype


def _shape(_: Any, *operands: Any, function: str, dtype: torch.dtype) -> Any:
    return None


def _call(self: Any, *operands: Any, function: str, dtype: torch.dtype) -> Any:
    return self._default("dml_call", operands, {"function": function, "dtype": dtype})


def _lowered(of: Of, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    def lower(*args: Any, **kwargs: Any) -> Any:
        chosen = of(*args, **kwargs) if _is_of_floats(args) else None
        if chosen is None:
            if otherwise is None:
                raise MissingKernelError("an operator of floats, of other operands")
            return otherwise(*args, **kwargs)
        function, operands = chosen
        tensors = [x for x in operands if isinstance(x, TensorBox)]
        dtype = tensors[0].get_dtype()

        def inner(*loaded: Any) -> Any:
            elements = iter(loaded)
            given = [next(elements) if isinstance(x, TensorBox) else x for x in operands]
            return ops.dml_call(*given, function=function, dtype=dtype)

        return lowering.make_pointwise(inner, override_return_dtype=dtype)(*lowering.broadcast_tensors(*tensors))

    return lower


def _is_of_floats(args: Sequence[Any]) -> bool:
    """Return whether tensors on the device, of one dtype of floats, meet numbers alone: Inductor
    knows how others are promoted.
    """
    boxes = [x for x in args if isinstance(x, TensorBox)]
    if not boxes or any(isinstance(x, IRNode) and not isinstance(x, TensorBox) for x in args):
        return False
    return all(is_on_device(x) and x.get_dtype().is_floating_point for x in boxes) and (
        len({x.get_dtype() for x in boxes}) == 1
    )
