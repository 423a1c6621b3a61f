"""Fused elementwise operators have the bits of the operators alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.compile.compiled import compiled, same_bits

CHAINS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: ((x + y) * x - 0.1 * y) / (y.abs() + 1),
    "transcendental": lambda x, y: (x.sin() * y.cos()).exp().tanh() + x.abs().sqrt().log1p(),
    "roots": lambda x, y: torch.rsqrt(x.abs() + 0.5) * torch.reciprocal(y.abs() + 0.5),
    "powers": lambda x, y: x.abs().pow(y) + x**3 + x.square(),
    "selection": lambda x, y: torch.where(x > y, x.clamp(-1, 1), torch.maximum(x, -y)),
    "comparison": lambda x, y: (x >= y) & (x != 0) | x.isnan() | torch.signbit(y),
    "rounding": lambda x, y: x.floor() + y.ceil() + (x * y).round() + x.trunc(),
    "activations": lambda x, y: F.silu(x) + F.gelu(y) + F.relu(x) * torch.sigmoid(y) + F.softplus(x),
    "error functions": lambda x, y: torch.erf(x) + torch.erfc(y) + torch.erfinv(torch.tanh(x / 4)),
    "gamma": lambda x, y: torch.lgamma(x.abs() + 1) + torch.digamma(y.abs() + 1),
    "conversions": lambda x, y: (x * 10).to(torch.int32).to(x.dtype) + (y > 0).to(x.dtype),
}


SMOKE = ("arithmetic", "activations")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.smoke] * (n in SMOKE)) for n in CHAINS])
def test_chains_of_floats(name: str, dtype: torch.dtype) -> None:
    x, y = (3 * torch.randn(2, 37, 11)).to(dtype).to("dml")
    function = CHAINS[name]
    assert same_bits(compiled(function)(x, y), function(x, y))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_chains_of_integers(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((x + y) * 3 - x) ^ (x & y) | (~x << 1) + torch.minimum(x, y).abs()

    x, y = torch.randint(0, 120, (2, 300)).to(dtype).to("dml")
    assert same_bits(compiled(function)(x, y), function(x, y))


def test_bools() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x | y) & ~(x ^ y) | x.logical_not()

    x, y = (torch.randn(2, 300) > 0).to("dml")
    assert same_bits(compiled(function)(x, y), function(x, y))


def test_operands_of_other_shapes_and_strides() -> None:
    def function(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return (x.t() * y).flip(0)[1:, ::2] + z

    x, y, z = torch.randn(20, 30).to("dml"), torch.randn(20).to("dml"), torch.randn(29, 1).to("dml")
    assert same_bits(compiled(function)(x, y, z), function(x, y, z))


def test_views_joins_and_padding() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([x, y * 2, x[:, :3]], 1)
        return F.pad(joined, (2, 1, 0, 3), value=-1.5).reshape(-1, 2).roll(3, 0) + 1

    x, y = torch.randn(2, 8, 10).to("dml")
    assert same_bits(compiled(function)(x, y), function(x, y))


def test_numbers_that_change() -> None:
    def function(x: torch.Tensor, scale: float, shift: int) -> torch.Tensor:
        return x * scale + shift

    run, x = compiled(function), torch.randn(100, device="dml")
    for scale, shift in ((0.1, 3), (0.7, -5), (float("inf"), 0)):
        assert same_bits(run(x, scale, shift), function(x, scale, shift))


def test_a_tensor_of_the_cpu_that_is_a_number() -> None:
    x, number = torch.randn(100, device="dml"), torch.tensor(0.3)
    assert same_bits(compiled(torch.mul)(x, number), x * number)


def test_dynamic_sizes_and_no_elements() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.sin(), x[::2] * x.shape[0]])

    run = compiled(function, dynamic=True)
    for n in (4, 7, 1000, 2):
        x = torch.randn(n, 3, device="dml")
        assert same_bits(run(x), function(x))
    empty = torch.empty(0, 3, device="dml")
    assert same_bits(compiled(torch.sin)(empty), empty)


def test_values_of_indices_that_need_64_bits() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(0, 10**12, 10**9, device=x.device)

    x = torch.zeros(1000, dtype=torch.int64, device="dml")
    assert same_bits(compiled(function)(x), function(x))


def test_in_place() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(y)
        x[1:] = 0
        return x.sum()

    x, y = torch.ones(3, 2, device="dml"), torch.ones(2, device="dml")
    assert compiled(function)(x, y).item() == 6
    assert x.tolist() == [[3, 3], [0, 0], [0, 0]]


def test_more_elements_than_one_dimension_of_workgroups_has_room_for() -> None:
    x = torch.arange((1 << 24) + 300, dtype=torch.uint8, device="dml")
    assert same_bits(compiled(lambda x: x * 2 + 1)(x), x * 2 + 1)
    rows = torch.arange(70000 * 256, dtype=torch.uint8, device="dml").view(70000, 256)
    assert same_bits(compiled(lambda x: x.amax(1))(rows), rows.amax(1))
