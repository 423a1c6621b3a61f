"""Reductions whose invocations have several elements of a row at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code

from tests.compile.compiled import compiled, same_bits

# Rows that fit a subgroup, the registers of a workgroup, and neither; some with a rest.
WIDTHS = [1, 20, 33, 255, 257, 768, 1000, 2048, 2500, 4096, 5003, 8192]

EXACT: dict[str, Callable[[torch.Tensor], Any]] = {
    "extremes": lambda x: (x.amax(1), x.amin(1), x.max(1), x.argmin(1)),
    "conditions": lambda x: ((x > 2).any(1), (x > -9).all(1), (x > 0).sum(1)),
    "stores": lambda x: (x * 2, (x * 2).amax(1), x.argmax(1)),
}
SUMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: (x.sum(1), (x * x).mean(1)),
    "softmax": lambda x: (x.softmax(1), F.log_softmax(x + 1, 1)),
    "norm": lambda x: (F.layer_norm(x, x.shape[1:]), F.rms_norm(x * 2, x.shape[1:])),
    "moments": lambda x: torch.var_mean(x + 100, 1, correction=0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_results(name: str, width: int, dtype: torch.dtype) -> None:
    x = (torch.randn(7, width) * 4).to(dtype)
    x[3, :] = 3  # all equal: the first index counts
    if dtype.is_floating_point and width > 2:
        x[4, width // 2] = torch.nan
        x[5, width - 1] = torch.nan
    on_device = x.to("dml")
    assert same_bits(compiled(EXACT[name])(on_device), EXACT[name](on_device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, width: int, dtype: torch.dtype) -> None:
    x = torch.randn(5, width).to(dtype)
    found = compiled(SUMS[name])(x.to("dml"))
    expected = SUMS[name](x.double())
    # Sums of numbers around 0 lose digits, and those around 100 have fewer.
    epsilon = torch.finfo(dtype).eps * (100 if name == "moments" else max(1, width**0.5 / 4))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double().cpu(), other, rtol=8 * epsilon, atol=8 * epsilon)


@pytest.mark.smoke
def test_rows_in_registers_and_in_loops() -> None:
    for width in (300, 5003):
        x = torch.randn(5, width)
        for one, other in zip(compiled(SUMS["softmax"])(x.to("dml")), SUMS["softmax"](x.double()), strict=True):
            torch.testing.assert_close(one.double().cpu(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("height", [3, 64, 300, 1000])
def test_columns(height: int) -> None:
    x = torch.randn(height, 70)
    y = x.bfloat16()

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(0), (x * 2).amax(0), x.argmax(0), y.sum(0, dtype=torch.float32)

    found = compiled(function)(x.to("dml"), y.to("dml"))
    for one, other in zip(found, function(x.double(), y.double()), strict=True):
        torch.testing.assert_close(one.double().cpu(), other.double(), rtol=1e-5, atol=1e-4)


def test_bits_do_not_depend_on_addresses() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1), F.layer_norm(x, x.shape[-1:]), x.sum(-1), x.sum(0)

    memory = torch.randn(1 + 6 * 5000, device="dml")
    odd = memory[1:].view(6, 5000)
    found = compiled(function)(odd)
    torch.compiler.reset()
    assert same_bits(found, compiled(function)(odd.clone()))


def test_sizes_that_change() -> None:
    function = compiled(lambda x: (x.softmax(1), x.amax(1), x.argmax(0)), dynamic=True)
    for shape in ((4, 300), (5, 700), (3, 2100), (2, 9000), (6, 256)):
        x = torch.randn(shape, device="dml")
        softmax, *others = function(x)
        torch.testing.assert_close(softmax, x.softmax(1))
        assert same_bits(others, (x.amax(1), x.argmax(0)))


@pytest.mark.parametrize("width", [300, 5000])
def test_indices_in_rows(width: int) -> None:
    def function(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return table[index].amax(1)

    table = torch.randn(50, device="dml")
    index = torch.randint(-50, 50, (4, width), device="dml")
    run = compiled(function)
    found, codes = run_and_get_code(run, table, index)
    assert "amax" in codes[0] and same_bits(found, function(table, index))
    index[2, width - 1] = 50
    with pytest.raises(IndexError, match="index 50 is out of"):
        run(table, index)
        torch.get_device_module("dml").synchronize()


def test_in_place() -> None:
    x = torch.randn(6, 1000, device="dml")
    expected = x - x.amax(1, keepdim=True)
    compiled(lambda x: x.sub_(x.amax(1, keepdim=True)))(x)
    assert same_bits(x, expected)
