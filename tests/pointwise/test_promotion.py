"""Type promotion: every pair of dtypes, dimensioned and 0-dim tensors, and Python numbers."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.support.compare import assert_same, assert_same_outcome
from tests.support.dtypes import ALL


@pytest.mark.smoke
@pytest.mark.parametrize("left", ALL, ids=str)
def test_pairs_of_tensors(left: torch.dtype) -> None:
    for right in ALL:
        a, b = torch.tensor([0, 1, 3]).to(left), torch.tensor([1, 1, 2]).to(right)
        for x, y in ((a, b), (a, b[2]), (a[2], b), (a[2], b[2])):
            assert_same(x.to("dml") + y.to("dml"), x + y)
        assert_same(a.to("dml") / b.to("dml"), a / b)
        assert_same(a.to("dml") == b.to("dml"), a == b)


@pytest.mark.parametrize("name", ["gcd", "bitwise_left_shift", "bitwise_right_shift", "floor_divide", "remainder"])
@pytest.mark.parametrize("narrow", [torch.int32, torch.int16, torch.int8], ids=str)
def test_widened_integers_keep_their_sign(narrow: torch.dtype, name: str) -> None:
    function = getattr(torch, name)
    a, b = torch.tensor([-7, -1, 0, 5, 1000, -1000]).to(narrow), torch.tensor([2, -3, 5, 4, -7, 9])
    assert_same(function(a.to("dml"), b.to("dml")), function(a, b))
    if name != "floor_divide" and name != "remainder":  # some of which divide by zero
        assert_same(function(b.to("dml"), a.to("dml")), function(b, a))


@pytest.mark.parametrize("number", [2, 1.5, True])
def test_numbers(number: float) -> None:
    for dtype, function in itertools.product(ALL, (torch.add, torch.mul, torch.div, torch.lt)):
        for x in (torch.tensor([0, 1, 3]).to(dtype), torch.tensor(3).to(dtype)):
            assert_same(function(x.to("dml"), number), function(x, number))


def test_the_default_dtype_counts() -> None:
    x = torch.arange(4)
    torch.set_default_dtype(torch.float64)
    try:
        assert_same(x.to("dml") / 3, x / 3)
        assert_same(x.to("dml").exp(), x.exp())
        assert_same(x.to("dml") + 0.5, x + 0.5)
    finally:
        torch.set_default_dtype(torch.float32)


def test_where_and_clamp_promote() -> None:
    flag, n, f = torch.tensor([True, False]), torch.tensor([1, 2]), torch.tensor([0.5, 1.5])
    assert_same(torch.where(flag.to("dml"), n.to("dml"), f.to("dml")), torch.where(flag, n, f))
    assert_same(torch.where(flag.to("dml"), n.to("dml"), 0.5), torch.where(flag, n, 0.5))
    assert_same(torch.clamp(n.to("dml"), 0.5, 1.5), torch.clamp(n, 0.5, 1.5))
    assert_same(torch.clamp(n.to("dml"), max=f.to("dml")), torch.clamp(n, max=f))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32], ids=str)
def test_a_bound_that_is_nan(dtype: torch.dtype) -> None:
    """Everything becomes NaN. Before 2.15 the CPU ignores a single bound that is a NaN number."""
    x, nan = torch.tensor([1, -3, 7], dtype=dtype), math.nan
    for low, high in ((nan, 5), (5, nan), (torch.tensor(nan), None)):
        ours = [b.to("dml") if isinstance(b, torch.Tensor) else b for b in (low, high)]
        assert_same(torch.clamp(x.to("dml"), *ours), torch.clamp(x, low, high))
    for bounds in ((nan, None), (None, nan)):
        assert_same(torch.clamp(x.to("dml"), *bounds), torch.clamp_min(x, nan))
    assert_same(torch.clamp_min(x.to("dml"), nan), torch.clamp_min(x, nan))
    assert_same_outcome(lambda x: torch.nn.functional.hardtanh(x, nan, 5.0), x)


def test_half_dtypes_meet_in_float32() -> None:
    a, b = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.bfloat16)
    assert (a.to("dml") + b.to("dml")).dtype == torch.float32


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("other", [torch.int32, torch.int64, torch.float32], ids=str)
def test_numbers_beyond_halves(half: torch.dtype, other: torch.dtype) -> None:
    """As on the CPU, a 0-dim factor of halves is not rounded to half precision; other operands
    are.
    """
    x = torch.tensor([1e-5, -1e-5, 2e-4, 3.0, -6e4], dtype=half)
    for number in (100000, -70001, 2049):
        y = torch.tensor(number, dtype=other)
        for name in ("mul", "div", "add", "sub", "fmod", "maximum", "nextafter", "lt"):
            function = getattr(torch, name)
            assert_same(function(x.to("dml"), y.to("dml")), function(x, y))
        assert_same(x.to("dml").mul_(y.to("dml")), x.clone().mul_(y))
        for name in ("_foreach_mul", "_foreach_div"):
            function = getattr(torch, name)
            for shared in (False, True):
                ours, theirs = (
                    function([x.to(device)] * 2, y.to(device) if shared else [y.to(device)] * 2)
                    for device in ("dml", "cpu")
                )
                assert_same(list(ours), list(theirs))
