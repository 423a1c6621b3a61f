"""Compiled reductions differ from the operators' only by the order of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map

from tests.compile.compiled import compiled, same_bits
from tests.support.compare import assert_same

SHAPES = [(3, 5), (70, 64), (9, 257), (4, 1000), (300, 3), (1, 70000), (1025, 40)]

SUMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: x.sum(-1),
    "sum of columns": lambda x: x.sum(0),
    "all": lambda x: (x * x).sum(),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "variance": lambda x: torch.var_mean(x, -1),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "product": lambda x: (1 + x / 1000).prod(-1),
}
EXACT: dict[str, Callable[[torch.Tensor], Any]] = {
    "maximum": lambda x: (x.amax(-1), x.amin(0)),
    "positions": lambda x: (x.argmax(-1), x.argmin(0), x.round().argmax(-1)),
    "any": lambda x: ((x > 2).any(-1), (x > -2).all(0)),
    "integers": lambda x: ((x * 10).to(torch.int32).sum(-1), (x > 0).sum(0)),
}


SMOKE = ("softmax", "variance")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.smoke] * (n in SMOKE)) for n in SUMS])
def test_sums(name: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    expected = tree_map(torch.Tensor.float, SUMS[name](x.double()))
    error = 1e-4 if name == "product" else 2e-5  # Each of up to 70,000 factors is rounded.
    assert_same(compiled(SUMS[name])(x.to("dml")), expected, rtol=error, atol=error)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_what_has_no_rounding(name: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape).to("dml")
    assert same_bits(compiled(EXACT[name])(x), EXACT[name](x))


TILED = [(3, 70000, 5), (2100000, 2, 1), (1, 2, 2100000)]


@pytest.mark.parametrize("shape", TILED, ids=str)
@pytest.mark.parametrize("options", [{}, {"triton.prefer_nd_tiling": True, "triton.max_tiles": 3}], ids=["", "tiles"])
def test_dimensions_with_more_workgroups_than_an_adapter_has_room_for(shape: tuple[int, ...], options: Any) -> None:
    def function(x: torch.Tensor) -> Any:
        turned = x.permute(2, 1, 0)
        return (turned * 2).contiguous(), *((turned[1:] > 0).sum(dim) for dim in range(3))

    x = torch.randn(shape).to("dml")
    assert same_bits(compiled(function, options=options)(x), function(x))


def test_nan_and_infinities() -> None:
    x = torch.randn(6, 300)
    x[0, 7] = x[1, 3] = x[1, 200] = torch.nan
    x[2, 9], x[3, 4], x[4] = torch.inf, -torch.inf, -torch.inf
    x = x.to("dml")

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.amax(-1), x.amin(-1), x.argmax(-1), x.argmin(-1), x.isnan().any(-1)

    assert same_bits(compiled(function)(x), function(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: torch.dtype) -> None:
    x = torch.rand(20, 3000).to(dtype)
    found = compiled(lambda x: x.sum(-1))(x.to("dml"))
    assert found.dtype == dtype
    assert_same(found, x.double().sum(-1).to(dtype), rtol=torch.finfo(dtype).eps, atol=0.0)


def test_dynamic_sizes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.softmax(x, -1) * x.mean(0)

    run = compiled(function, dynamic=True)
    for shape in ((3, 5), (40, 700), (700, 40), (2, 5000)):
        x = torch.randn(shape)
        assert_same(run(x.to("dml")), function(x.double()).float(), rtol=2e-5, atol=2e-5)


def test_sums_are_repeatable() -> None:
    x = torch.randn(37, 5000, device="dml")
    run = compiled(lambda x: (x.sum(), x.sum(0), x.sum(1)))
    first = run(x)
    assert all(same_bits(run(x), first) for _ in range(3))
