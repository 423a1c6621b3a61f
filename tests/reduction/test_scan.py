"""Cumulative sums, products and extrema, compared with the CPU."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu
from tests.support.dtypes import ALL, dtypes, sample


@dtypes(ALL)
def test_dtypes_and_dims(dtype):
    x = sample(3, 5, 7, dtype=dtype)
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda x, dim=dim: x.cumsum(dim), x)
        assert_matches_cpu(lambda x, dim=dim: x.cumprod(dim), x)
        assert_matches_cpu(lambda x, dim=dim: (*x.cummax(dim), *x.cummin(dim)), x)
        if dtype.is_floating_point:
            assert_matches_cpu(lambda x, dim=dim: x.logcumsumexp(dim), x)
    assert_matches_cpu(lambda x: x.cumsum(1, dtype=torch.float64), x)
    assert_matches_cpu(lambda x: x[0, 0, 0].cumsum(0), x)
    assert_matches_cpu(lambda x: x[:, :0].cumsum(0), x)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 100, 1023, 1025, 5000, 100_000])
def test_lengths(n):
    for shape, dim in (((2, n), 1), ((n, 3), 0), ((2, n, 2), 1)):
        x = torch.randn(shape)
        want = x.double().cumsum(dim)
        bound = x.double().abs().cumsum(dim) * 1e-6 + 1e-6
        assert ((x.to("dml").cumsum(dim).cpu() - want).abs() <= bound).all()
    whole = torch.randint(-100, 100, (2, n))
    assert_matches_cpu(lambda x: (x.cumsum(1), *x.cummax(1), *x.cummin(1)), whole)


def test_strides_out_and_in_place():
    x = torch.randn(4, 6, 5)
    assert_matches_cpu(lambda x: x.transpose(0, 2).cumsum(1), x)
    assert_matches_cpu(lambda x: x[:, ::2].cumsum(1), x)

    def run(x):
        out, wide = torch.empty(0, device=x.device), torch.zeros(5, 6, 4, device=x.device).permute(2, 1, 0)
        torch.cumsum(x, 1, out=out)
        torch.cumprod(x, 2, out=wide)
        return out, wide, x.clone().cumsum_(0), x.clone().cumprod_(1), x.transpose(0, 1).clone().cumsum_(0)

    assert_matches_cpu(run, x)


def test_special_values():
    x = torch.tensor([[1.0, math.nan, 3.0, 2.0, math.nan], [2.0, 2.0, math.inf, 1.0, -math.inf], [-math.inf] * 5])
    assert_matches_cpu(lambda x: (x.cumsum(1), x.cumprod(1), x.logcumsumexp(1), *x.cummax(1), *x.cummin(1)), x)


def test_gradients():
    x = torch.randn(3, 6, requires_grad=True)
    assert_matches_cpu(lambda x: x.cumsum(1) * x, x)
    assert_matches_cpu(lambda x: x.logcumsumexp(1), x)


def test_errors():
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(3, device="dml").cumsum(1)
