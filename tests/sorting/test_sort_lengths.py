"""Sorting and selection around the lengths at which the algorithm changes, and with difficult
rows.
"""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_same
from tests.support.dtypes import ALL, dtypes


def bits(x: torch.Tensor) -> torch.Tensor:
    """The bits, which distinguish NaNs and zeros."""
    return x.contiguous().view(torch.uint8)


def assert_sorts(x: torch.Tensor, dim: int = -1, descending: bool = False) -> None:
    values, indices = x.to("dml").sort(dim=dim, stable=True, descending=descending)
    want = x.sort(dim=dim, stable=True, descending=descending)
    assert_same(indices, want.indices)
    assert torch.equal(bits(values.cpu()), bits(want.values))


def any_bits(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    """Elements with any bits: NaN of every payload, both zeros, extreme integers."""
    if dtype == torch.bool:
        return torch.rand(*sizes) > 0.5
    words = torch.randint(-(2**63), 2**63 - 1, sizes).view(torch.int64)
    x = words.view(torch.int16)[..., ::4].contiguous() if dtype.itemsize == 2 else words
    x = words.view(torch.int32)[..., ::2].contiguous() if dtype.itemsize == 4 else x
    x = words.view(torch.int8)[..., ::8].contiguous() if dtype.itemsize == 1 else x
    x = x.view(dtype)
    return torch.where(torch.rand(*sizes) < 0.1, torch.zeros((), dtype=dtype), x)


@dtypes(ALL)
def test_dtypes(dtype: torch.dtype) -> None:
    descending = dtype.itemsize in (2, 8)
    for n in (129, 4095, 4097):
        assert_sorts(any_bits(2, n, dtype=dtype), descending=descending)


@pytest.mark.parametrize("n", [1, 128, 129, 256, 257, 2048, 4095, 4096, 4097, 8192, 65_537, (1 << 20) + 3])
def test_lengths(n: int) -> None:
    assert_sorts(torch.randn(n))
    # Many are equal, so that the order of equal ones is visible.
    assert_sorts(torch.randint(-3, 3, (n,), dtype=torch.int32), descending=True)


def test_of_many_rows() -> None:
    for rows, n in ((70, 130), (33, 300), (9, 5000), (300, 4099)):
        assert_sorts(torch.randint(-100, 100, (rows, n), dtype=torch.int32))
    for n in (200, 4096, 5000):
        assert_sorts(torch.randn(n, 37), dim=0)
        assert_sorts(torch.randn(3, n, 4)[:, :, 1:3], dim=1)


@pytest.mark.parametrize("n", [300, 4096, 70_000])
def test_of_special_orders(n: int) -> None:
    ascending = torch.arange(n, dtype=torch.int32)
    for x in (ascending, ascending.flip(0), torch.full((n,), 7, dtype=torch.int32), ascending % 2, ascending * 65_536):
        assert_sorts(x)
    assert_sorts(torch.full((n,), math.nan))


@pytest.mark.parametrize("n", [511, 512, 1000, 4096, 4097, 9000])
@pytest.mark.parametrize("k", [1, 2, 64, 128, 129, 256, 257])
def test_the_first_of_equal_ones_are_selected(n: int, k: int) -> None:
    for x in (torch.randint(-3, 3, (3, n), dtype=torch.int32), torch.zeros(2, n, dtype=torch.int32)):
        for largest in (True, False):
            values, indices = x.to("dml").topk(k, largest=largest)
            want = x.sort(dim=-1, stable=True, descending=largest)
            assert_same(values, want.values[:, :k])
            assert_same(indices, want.indices[:, :k])


@dtypes(torch.int8, torch.float16, torch.float32, torch.int64, torch.float64)
def test_selection_of_dtypes(dtype: torch.dtype) -> None:
    x = any_bits(3, 5000, dtype=dtype)
    for rows in (x[:, :2000], x, x[:, :3000].t().contiguous().t()):
        want = rows.sort(dim=-1, stable=True)
        values, indices = rows.to("dml").topk(33, largest=False)
        assert_same(indices, want.indices[:, :33])
        assert torch.equal(bits(values.cpu()), bits(want.values[:, :33]))
        _, middle = rows.to("dml").kthvalue(700)
        assert_same(middle, want.indices[:, 699])
