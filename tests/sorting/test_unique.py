"""unique and similar operators, compared with the CPU."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu
from tests.support.dtypes import ALL, dtypes


def everything(function, *args, **kwargs):
    return lambda x: function(x, *args, return_inverse=True, return_counts=True, **kwargs)


def sample(*sizes, dtype=torch.float32):
    return torch.randint(0, 2 if dtype == torch.bool else 7, sizes).to(dtype)


@dtypes(ALL)
def test_dtypes(dtype):
    x = sample(5, 12, dtype=dtype)
    for function in (torch.unique, torch.unique_consecutive):
        assert_matches_cpu(function, x)
        assert_matches_cpu(everything(function), x)
        for dim in (0, 1, -2):
            assert_matches_cpu(everything(function, dim=dim), x[:, :2] if dim != 1 else x[:1])
    for inverse in (False, True):
        assert_matches_cpu(lambda x, i=inverse: torch._unique(x, True, i), x)
    assert_matches_cpu(everything(torch.unique, sorted=False), x)


@pytest.mark.parametrize("n", [0, 1, 2, 255, 2048, 5000, 40_000])
def test_lengths(n):
    x = torch.randint(-n, n + 1, (n,))
    for function in (torch.unique, torch.unique_consecutive):
        assert_matches_cpu(everything(function), x)
        assert_matches_cpu(everything(function), x // 50)
        assert_matches_cpu(everything(function), torch.zeros(n))


@pytest.mark.parametrize(("n", "width"), [(1, 3), (2, 1), (7, 5), (300, 2), (5000, 3), (20, 2000)])
def test_slices(n, width):
    x = torch.randint(-1, 2, (n, width))
    for function in (torch.unique, torch.unique_consecutive):
        assert_matches_cpu(everything(function, dim=0), x)
        assert_matches_cpu(everything(function, dim=1), x.t().contiguous())
        assert_matches_cpu(everything(function, dim=0), x[torch.randint(0, min(n, 4), (n,))].float())
    assert_matches_cpu(everything(torch.unique, dim=1), torch.randint(0, 2, (3, n, 2)))


def test_consecutive_of_one_dimension():
    x = torch.tensor([1.0, 1.0, 2.0])
    for inverse, counts, dim in itertools.product((False, True), (False, True), (None, 0, -1)):
        assert_matches_cpu(lambda t, o=(inverse, counts, dim): torch.ops.aten.unique_consecutive(t, *o), x)


def test_special_values():
    x = torch.tensor([math.nan, 1.0, math.nan, -0.0, 0.0, 1.0, math.inf, -math.inf, math.inf])
    assert_matches_cpu(everything(torch.unique), x)
    assert_matches_cpu(everything(torch.unique_consecutive), x)
    # The CPU's order is undefined if a NaN is compared.
    rows = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0], [math.nan, 5.0], [math.nan, 5.0]])
    assert_matches_cpu(everything(torch.unique, dim=0), rows)
    assert_matches_cpu(everything(torch.unique_consecutive, dim=0), rows)


def test_shapes_and_strides():
    x = sample(4, 6, 5)
    for function in (torch.unique, torch.unique_consecutive):
        assert_matches_cpu(everything(function), x.transpose(0, 2))
        assert_matches_cpu(everything(function), torch.tensor(3.0))
        assert_matches_cpu(everything(function, dim=1), x[:, ::2])
        assert_matches_cpu(everything(function, dim=0), torch.zeros(0, 3))
    assert_matches_cpu(lambda x: everything(torch.unique)(x[:, ::2, 1:4]), x)
    assert_matches_cpu(lambda x: everything(torch.unique, dim=2)(x.transpose(0, 2)), x)


def test_what_is_not_asked_for():
    x = sample(5, 3)
    for flags in ((False, False), (True, False), (False, True)):
        assert_matches_cpu(lambda x, f=flags: torch.ops.aten.unique_dim(x, 0, True, *f), x)
        assert_matches_cpu(lambda x, f=flags: torch.ops.aten.unique_dim_consecutive(x, 1, *f), x)
        assert_matches_cpu(lambda x, f=flags: torch.ops.aten.unique_consecutive(x, *f, 0), x)
        assert_matches_cpu(lambda x, f=flags: torch.ops.aten.unique_consecutive(x, *f), x)


def test_errors():
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.zeros(3, 0, device="dml").unique(dim=0)
    with pytest.raises(RuntimeError, match="more than one"):
        torch.zeros(0, 0, device="dml").unique(dim=0)
    with pytest.raises(IndexError):
        torch.zeros(3, device="dml").unique(dim=1)
    with pytest.raises(IndexError, match="no dimensions"):
        torch.tensor(1.0, device="dml").unique(dim=0)
