"""Calls of pointwise operators: any dtypes, broadcast shapes, scalars in place of tensors,
in-place, out=.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from ..support.names import words
from . import tensors, values
from .arguments import call, plain
from .calls import BACKWARD, DOUBLE, FORWARD, Call
from .schemas import Overload

OPERATORS = set(
    words(
        """
        abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
        bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min conj_physical copysign
        cos cosh digamma div elu eq erf erfc erfinv exp exp2 expm1 fill floor floor_divide fmax fmin fmod frac frexp
        gcd ge gelu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac isinf isnan
        isneginf isposinf lcm le leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and
        logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul mvlgamma nan_to_num ne neg
        nextafter polygamma pow reciprocal relu remainder round rsqrt rsub sgn sigmoid sign signbit silu sin sinc
        sinh softplus softshrink sqrt sub tan tanh threshold trunc where xlogy zero __lshift__ __rshift__
        __ilshift__ __irshift__ _prelu_kernel log_sigmoid_forward elu_backward gelu_backward hardshrink_backward
        hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward logit_backward mish_backward
        sigmoid_backward silu_backward softplus_backward softshrink_backward tanh_backward threshold_backward
        _prelu_kernel_backward
        """
    )
)

LOSSES = set(
    words(
        """
        mse_loss huber_loss smooth_l1_loss binary_cross_entropy mse_loss_backward huber_loss_backward
        smooth_l1_loss_backward binary_cross_entropy_backward
        """
    )
)


def is_elementwise(overload: Overload) -> bool:
    """Whether the overload is pointwise."""
    return overload.base in OPERATORS or overload.base.startswith("special_")


def stage(rng: random.Random) -> str:
    """Whether gradients are computed, and how."""
    return rng.choices((FORWARD, BACKWARD, DOUBLE), (7, 2, 1))[0]


def make(rng: random.Random, overload: Overload) -> Call:
    """A call of a pointwise overload."""
    sizes, dtype = tensors.shape(rng), values.dtype(rng)
    palette = values.palette(rng)
    given: dict[str, Any] = {}
    first: torch.Tensor | None = None
    for argument in overload.arguments:
        if argument in overload.outs:
            continue
        kind = argument.type.removesuffix("?")
        if kind == "Tensor":
            if argument.type.endswith("?") and rng.random() < 0.2:
                given[argument.name] = None
                continue
            chosen = dtype if first is None else values.other_dtype(rng, dtype)
            if argument.name in ("mask", "condition"):
                chosen = torch.bool if rng.random() < 0.95 else dtype
            own = sizes if first is None and rng.random() < 0.8 else tensors.broadcast(rng, sizes)
            mixed = palette if rng.random() < 0.6 else values.palette(rng)
            if argument.name == "n":  # degrees of polynomials: time grows with them
                mixed = "whole"
            made = tensors.tensor(rng, own, chosen, mixed)
            if first is not None and rng.random() < 0.04:
                made = rng.choice((first, first.mT if first.dim() > 1 else first, first.flatten()[:1]))
            first = made if first is None else first
            given[argument.name] = made
        else:
            like = first if first is not None else torch.empty(0, dtype=dtype)
            given[argument.name] = plain(rng, argument, like)
    if overload.base in ("mvlgamma", "polygamma"):
        given |= {name: rng.randint(0, 4) for name in ("n", "p") if name in given}
    if overload.base == "smooth_l1_loss_backward":  # for a negative beta the CPU's vectors and single elements differ
        given["beta"] = abs(given["beta"])
    made_call = call(rng, overload, given, stage, aliases=True)
    return with_number(rng, overload, made_call)


def with_number(rng: random.Random, overload: Overload, made: Call) -> Call:
    """Sometimes the call as in a program, torch.add(x, 2.5), where the number is a wrapped one."""
    public = getattr(torch, overload.base, None)
    tensor_first = bool(overload.arguments) and overload.arguments[0].type == "Tensor"
    names = [argument.name for argument in overload.arguments]
    if made.stage != FORWARD or names[:2] != ["self", "other"] or not tensor_first or overload.outs:
        return made
    if public is None or rng.random() > 0.25 or not isinstance(made.args[0], torch.Tensor):
        return made
    number = values.scalar(rng, made.args[0].dtype)
    if overload.in_place:
        made.function = f"torch.Tensor.{overload.base}_"
        made.args[1] = number
    else:
        made.function = f"torch.{overload.base}"
        made.args = [made.args[0], number] if rng.random() < 0.7 else [number, made.args[0]]
    return made
