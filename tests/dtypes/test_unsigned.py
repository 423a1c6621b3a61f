"""Unsigned integers of 16, 32 and 64 bits: stored, converted, and the few operators that the CPU
has for them.
"""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same_error, assert_same_outcome
from tests.support.dtypes import FLOATS, INTEGERS, dtypes
from tests.support.layouts import lay_out, layouts

UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


def top(dtype: torch.dtype) -> int:
    return 2 ** (8 * dtype.itemsize)


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Small numbers, the middle, and the largest."""
    middle = top(dtype) // 2
    return torch.tensor([0, 1, 2, 77, middle - 1, middle, middle + 1, top(dtype) - 2, top(dtype) - 1], dtype=dtype)


def bits(x: torch.Tensor) -> torch.Tensor:
    """Reinterpreted as signed integers of the same size, which can be compared."""
    signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.cpu().view(signed[x.element_size()]) if x.dtype in UNSIGNED else x.cpu()


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
    assert torch.equal(bits(actual), bits(expected))


@pytest.mark.smoke
@dtypes(UNSIGNED)
def test_casts_to_others(dtype: torch.dtype) -> None:
    x = numbers(dtype)
    for to in (*FLOATS, *INTEGERS, *UNSIGNED, torch.bool):
        assert_same_bits(x.to("dml").to(to), x.to(to))


@pytest.mark.smoke
@dtypes(UNSIGNED)
def test_casts_of_floats(dtype: torch.dtype) -> None:
    values = [0.0, -0.0, 1.5, 2.9, 100.7, 65504.0, 40000.0, 3e9, 4294967040.0, 1e18, 1.2e19, -1.0, -2.5, -70000.0, -3e9]
    for source in FLOATS:
        x = torch.tensor(values).to(source)
        x = x[x.isfinite()]
        assert_same_bits(x.to("dml").to(dtype), x.to(dtype))


@dtypes(UNSIGNED)
def test_casts_of_integers(dtype: torch.dtype) -> None:
    for source in (*INTEGERS, torch.bool):
        x = torch.tensor([0, 1, -1, 100, -100, 127]).to(source)
        assert_same_bits(x.to("dml").to(dtype), x.to(dtype))


@dtypes(UNSIGNED)
def test_numbers(dtype: torch.dtype) -> None:
    x = numbers(dtype)
    ours = x.to("dml")
    assert [element.item() for element in ours] == x.tolist()
    assert ours.tolist() == x.tolist()
    for value in (0, 1, top(dtype) - 1, top(dtype) // 2, -1, 2.7):
        assert_same_bits(torch.full((3,), value, dtype=dtype, device="dml"), torch.full((3,), value, dtype=dtype))
        for function in (torch.eq, torch.ne):
            assert_same_bits(function(ours, value), function(x, value))
    if dtype != torch.uint64:
        assert_same_error(lambda y: y.to(dtype).fill_(top(dtype)), x.float())


@layouts()
def test_copies_of_layouts(layout: str) -> None:
    x = lay_out(torch.randint(0, 60000, (2, 3, 4, 5)), layout)
    for dtype in UNSIGNED:
        expected, actual = x.to(dtype), x.to("dml").to(dtype)
        assert_same_bits(actual, expected)
        assert_same_bits(actual.flatten()[1::2].contiguous(), expected.flatten()[1::2].contiguous())


@dtypes(UNSIGNED)
def test_what_computes(dtype: torch.dtype) -> None:
    x = numbers(dtype)
    y = x.roll(3)
    for function in (
        lambda x, y: x == y,
        lambda x, y: x != y,
        lambda x, y: x & y,
        lambda x, y: x | y,
        lambda x, y: x ^ y,
        lambda x, y: x * y,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: x[torch.tensor([3, 0, -1], device=x.device)],
        lambda x, y: x.sort().values,
        lambda x, y: x.unique(),
        lambda x, y: torch.equal(x, x.clone()) and not torch.equal(x, y),
        lambda x, y: x.sum(),
        lambda x, y: x + 1.5,
    ):
        expected, actual = function(x, y), function(x.to("dml"), y.to("dml"))
        if isinstance(expected, torch.Tensor):
            assert_same_bits(actual, expected)
        else:
            assert actual == expected


@dtypes(UNSIGNED)
def test_promotion(dtype: torch.dtype) -> None:
    x = torch.arange(5)
    for other in (torch.int64, torch.uint8, torch.bool):
        assert_same_error(lambda x, other=other: x.to(dtype) * x.to(other), x)
        assert_same_error(lambda x, other=other: x.to(dtype) == x.to(other), x)
        assert_same_error(lambda x, other=other: torch.cat([x.to(dtype), x.to(other)]), x)
    assert_same_outcome(lambda x: x.to(dtype) * x.float(), x)
    assert_same_outcome(lambda x: x.to(dtype) == x.float(), x)
