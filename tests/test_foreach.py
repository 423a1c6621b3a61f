"""Operators on lists of tensors, against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import assert_same, to_device, words

SHAPES = [(3, 4), (), (257,), (0,), (2, 1, 5)]
UNARY = words(
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)


def lists(dtype: torch.dtype = torch.float32, count: int = 3) -> list[list[torch.Tensor]]:
    if not dtype.is_floating_point:
        return [[torch.randint(1, 9, s).to(dtype) for s in SHAPES] for _ in range(count)]
    return [[(torch.rand(s) * 0.8 + 0.1).to(dtype) for s in SHAPES] for _ in range(count)]


def agree(name: str, *args: Any, **kwargs: Any) -> None:
    """The functional and the in-place form."""
    ours, more = to_device(args, "dml"), to_device(kwargs, "dml")
    function = getattr(torch, "_foreach_" + name)
    expected, actual = function(*args, **kwargs), function(*ours, **more)
    assert isinstance(actual, (list, tuple))
    for a, b in zip(actual, expected, strict=True):
        assert_same(a, b)
        assert a.stride() == b.stride()
    in_place = getattr(torch, f"_foreach_{name}_")
    if all(a.dtype == b.dtype for a, b in zip(args[0], expected, strict=True)):
        in_place(*ours, **more)
        assert_same(ours[0], list(expected))
    else:
        with pytest.raises(RuntimeError):
            in_place(*ours, **more)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    agree(name, lists()[0])
    agree(name, [x.t() if x.dim() == 2 else x for x in lists(torch.float64)[0]])


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "clamp_min", "clamp_max"])
def test_two_operands(name: str, dtype: torch.dtype) -> None:
    a, b, _ = lists(dtype)
    agree(name, a, b)
    agree(name, a, 2)
    agree(name, a, [3, 1, 2, 1, 4])
    if dtype.is_floating_point:
        agree(name, a, 0.5)
        agree(name, a, [0.5, 1.5, 2.0, 1.0, 3.0])
    if name in ("add", "sub"):
        agree(name, a, b, alpha=2)


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_a_tensor_for_all(name: str) -> None:
    a = lists()[0]
    agree(name, a, torch.tensor(2.5))
    function, ours = getattr(torch, "_foreach_" + name), to_device(a, "dml")
    assert_same(list(function(ours, torch.tensor(2.5))), list(function(a, torch.tensor(2.5))))
    if name == "add":
        agree(name, a, torch.tensor(2.5), alpha=3)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_three_lists(name: str) -> None:
    a, b, c = lists()
    agree(name, a, b, c)
    agree(name, a, b, c, value=0.5)
    agree(name, a, b, c, [0.5, 1.0, 2.0, 3.0, -1.0])
    numbers = torch.tensor([0.5, 1.0, 2.0, 3.0, -1.0])
    function = getattr(torch, "_foreach_" + name)
    ours = to_device((a, b, c), "dml")
    assert_same(list(function(*ours, numbers)), list(function(a, b, c, numbers)))


def test_lerp() -> None:
    a, b, c = lists()
    agree("lerp", a, b, 0.3)
    agree("lerp", a, b, c)
    agree("lerp", a, b, [0.1, 0.9, 0.5, 0.2, 0.7])


def test_zero_copy_norm_and_powers() -> None:
    a, b, _ = lists()
    ours, others = to_device(a, "dml"), to_device(b, "dml")
    torch._foreach_copy_(ours, others)
    assert_same(ours, b)
    torch._foreach_copy_(ours, a)
    assert_same(ours, a)
    assert_same(list(torch._foreach_pow(2.0, ours)), list(torch._foreach_pow(2.0, a)))
    torch._foreach_zero_(ours)
    assert_same(ours, [torch.zeros_like(x) for x in a])


def test_gradient_clipping() -> None:
    a = [x for x in lists()[0] if x.numel()]
    ours = to_device(a, "dml")
    for parameters in (a, ours):
        for p in parameters:
            p.requires_grad_()
            p.grad = p.detach() * 10
    assert_same(torch.nn.utils.clip_grad_norm_(ours, 1.0), torch.nn.utils.clip_grad_norm_(a, 1.0))
    assert_same([p.grad for p in ours], [p.grad for p in a])


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: torch._foreach_add(a, b[:2]),
        lambda a, b: torch._foreach_add(a, [1.0, 2.0]),
        lambda a, b: torch._foreach_add_(a, [x.unsqueeze(0).expand(2, *x.shape) for x in b]),
        lambda a, b: torch._foreach_addcmul(a, b, b, [1.0]),
        lambda a, b: torch._foreach_mul_([x.long() for x in a], 0.5),
    ],
)
def test_errors(call: Callable[..., Any]) -> None:
    a, b, _ = lists()
    with pytest.raises(Exception) as expected:
        call(a, b)
    with pytest.raises(type(expected.value)):
        call(to_device(a, "dml"), to_device(b, "dml"))
