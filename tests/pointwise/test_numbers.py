"""Scalars with tensors: numbers out of a dtype's range are refused, converted or wrapped around as
on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_same_outcome
from tests.support.dtypes import dtypes
from tests.support.environment import TORCH
from tests.support.names import words

NUMBERS = (300, -1, 1.5, -1.5, 255.5, -300, 1e30, float("inf"), True)
SMALL = (torch.uint8, torch.int8, torch.bool)

# Functions of a tensor with three elements and a number.
OPERATORS: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    **{
        name: getattr(torch, name)
        for name in words(
            "eq lt ge add mul sub div remainder fmod floor_divide bitwise_and bitwise_or bitwise_left_shift pow rsub "
            "xlogy copysign float_power true_divide full_like clamp_min clamp_max isin"
        )
    },
    "pow of a number": lambda x, n: torch.pow(n, x),
    "clamp": lambda x, n: x.clamp(n, n),
    "fill": lambda x, n: x.fill_(n),
    "masked_fill": lambda x, n: x.masked_fill(x > 1, n),
    "index_fill": lambda x, n: x.index_fill(0, (x.cumsum(0) * 0).long(), n),
    "scatter": lambda x, n: x.scatter(0, (x.cumsum(0) * 0).long(), n),
    "where": lambda x, n: torch.where(x > 1, x, n),
    "threshold": lambda x, n: F.threshold(x, n, n),
    "hardtanh": lambda x, n: F.hardtanh(x, n, n),
    "pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "add alpha": lambda x, n: torch.add(x, x, alpha=n),
    "sub alpha": lambda x, n: torch.sub(x, x, alpha=n),
    "rsub alpha": lambda x, n: torch.rsub(x, x, alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addr beta": lambda x, n: torch.addr(x, x, x, beta=n),
    "addr alpha": lambda x, n: torch.addr(x, x, x, alpha=n),
    "addmv": lambda x, n: torch.addmv(x[:1], x.view(1, 3), x, beta=n),
    "addmm": lambda x, n: torch.addmm(x, x.view(3, 1), x.view(1, 3), alpha=n),
    "index_add": lambda x, n: x.index_add(0, (x.cumsum(0) * 0).long(), x, alpha=n),
}


def is_another_since_2_15(name: str, dtype: torch.dtype, number: float) -> bool:
    """Whether torch 2.15 differs.

    torch 2.15 drops a number's fraction before it checks the dtype's range, and compares clamp's
    limits as numbers. dml follows the earlier versions.
    """
    limit = name.startswith("clamp") and isinstance(number, int)
    return TORCH >= (2, 15) and not dtype.is_floating_point and (limit or (number == 255.5 and dtype == torch.uint8))


@dtypes(*SMALL, torch.float16)
@pytest.mark.parametrize("name", OPERATORS)
def test_numbers(name: str, dtype: torch.dtype) -> None:
    for number in NUMBERS:
        if name == "hardtanh" and dtype == torch.uint8 and number < 0:
            continue  # Refused by torch before 2.15.
        if (name, dtype, number) == ("where", torch.float16, 1e30):
            continue  # Only the CPU converts a number to a tensor without checking its range.
        if is_another_since_2_15(name, dtype, number):
            continue
        x = torch.tensor([1, 2, 3]).to(dtype)
        assert_same_outcome(lambda t, number=number: OPERATORS[name](t, number), x, strides=False)


@dtypes(torch.int32, torch.int16, torch.uint8, torch.float32)
@pytest.mark.parametrize(
    "bounds", [(-3, 3, 0.5), (0, 3, 0.75), (0.7, 3, 1.5), (0, -3, -0.5), (0, 3, 0.0), (3, 0, 0.5), (0.5, 0.1, 1)]
)
def test_ranges_with_fractions(bounds: tuple[float, float, float], dtype: torch.dtype) -> None:
    assert_same_outcome(lambda device: torch.arange(*bounds, dtype=dtype, device=device.device), torch.empty(0))


@dtypes(torch.int8, torch.uint8)
def test_linspace_of_numbers_that_wrap(dtype: torch.dtype) -> None:
    for bounds in ((0, -1), (0, 300), (-1, 5), (1.5, 9.5)):
        assert_same_outcome(
            lambda device, bounds=bounds: torch.linspace(*bounds, 3, dtype=dtype, device=device.device), torch.empty(0)
        )
