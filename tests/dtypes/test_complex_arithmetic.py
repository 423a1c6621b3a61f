"""Arithmetic, comparisons and promotion of complex tensors, with reals and numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same_error, assert_same_outcome
from tests.support.dtypes import dtypes
from tests.support.layouts import lay_out, layouts

COMPLEX = (torch.complex64, torch.complex128)
OTHERS = (torch.complex64, torch.complex128, torch.float16, torch.float32, torch.float64, torch.int64, torch.bool)
BINARY: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "pow", "eq", "ne", "rsub")},
    **{name: getattr(torch, name) for name in ("logical_and", "logical_or", "logical_xor", "logaddexp")},
}


def numbers(*sizes: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    if dtype.is_complex or dtype.is_floating_point:
        return torch.randn(sizes, dtype=dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 5, sizes).to(dtype)


@pytest.mark.parametrize("name", BINARY)
@dtypes(*OTHERS)
def test_promotion(name: str, dtype: torch.dtype) -> None:
    """Complex tensors with tensors of any dtype, as either operand, with one element and with
    none.
    """
    function = BINARY[name]
    z = numbers(3, 4)
    for x in (numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype), numbers(dtype=dtype), numbers(0, 4, dtype=dtype)):
        if name == "logaddexp" and not dtype.is_complex:
            continue
        y = z[: x.shape[0]] if x.dim() == 2 else z
        for operands in ((y, x), (x, y)):
            if name in ("sub", "rsub") and dtype == torch.bool:
                assert_same_error(function, *operands)
            else:
                _close(function, *operands)


def _close(function: Callable[..., Any], *tensors: torch.Tensor) -> None:
    assert_matches_cpu(function, *tensors, rtol=2e-5, atol=1e-5, widen=False)


@pytest.mark.parametrize("number", [2, 0.5, 1 + 2j, 0, 3, -1, 2.5 - 1j, True])
@dtypes(*COMPLEX)
def test_numbers(number: complex, dtype: torch.dtype) -> None:
    z = numbers(5, dtype=dtype)
    for function in (operator.add, operator.mul, operator.truediv, operator.pow, torch.eq, torch.ne):
        if function is operator.truediv and number == 0:
            continue
        _close(lambda z, f=function: f(z, number), z)
    for function in (operator.add, operator.mul, operator.truediv, operator.pow):
        _close(lambda z, f=function: f(number, z), z)


def test_complex_numbers_beside_reals() -> None:
    x = torch.randn(5)
    for function in (
        lambda x: x * 1j,
        lambda x: x + (2 - 1j),
        lambda x: (1 + 1j) / x,
        lambda x: x ** (0.5 + 1j),
        lambda x: (0.5 + 1j) ** x,
        lambda x: x == 1j,
        lambda x: x.eq(1j),
        lambda x: torch.full((2,), 1 - 2j, device=x.device),
        lambda x: torch.tensor(2 + 1j, device=x.device).item(),
    ):
        _close(function, x)
    assert_same_outcome(lambda x: x.add_(1j), x)
    assert_same_outcome(lambda x: x.clone().copy_(torch.ones(5, device=x.device)), x)


@layouts()
@dtypes(*COMPLEX)
def test_layouts(layout: str, dtype: torch.dtype) -> None:
    x, y = (lay_out(torch.randn(4, 6, dtype=dtype), layout) for _ in range(2))
    for function in (torch.add, torch.mul, torch.div, torch.eq):
        assert_same_outcome(function, x, y, widen=False)
    assert_same_outcome(torch.mul, x, torch.randn(6, dtype=dtype), widen=False)
    assert_same_outcome(torch.mul, torch.randn(4, 6, dtype=dtype), y, widen=False)


@dtypes(*COMPLEX)
def test_of_three(dtype: torch.dtype) -> None:
    x, y, z = (torch.randn(4, 6, dtype=dtype) for _ in range(3))
    for function in (
        lambda x, y, z: torch.addcmul(x, y, z, value=0.5 - 1j),
        lambda x, y, z: torch.addcdiv(x, y, z, value=2),
        lambda x, y, z: torch.lerp(x, y, z),
        lambda x, y, z: torch.lerp(x, y, 0.25),
        lambda x, y, z: torch.lerp(x, y, 2 - 1j),
        lambda x, y, z: torch.add(x, y, alpha=1 - 2j),
        lambda x, y, z: torch.sub(x, y, alpha=3),
        lambda x, y, z: torch.where(x.real > 0, y, z),
        lambda x, y, z: torch.where(x.real > 0, y, 1.0),
        lambda x, y, z: torch.addr(x, y[:, 0], z[0], beta=2j, alpha=1 + 1j),
        lambda x, y, z: torch.linalg.cross(x[:, :3], y[:, :3]),
    ):
        assert_matches_cpu(function, x, y, z, rtol=1e-5, atol=1e-5, widen=False)


def test_lerp_of_other_dtypes_is_refused() -> None:
    x, wide = torch.randn(3, dtype=torch.complex64), torch.randn(3, dtype=torch.complex128)
    for given in ((x, wide, x), (x, x, wide), (wide, wide, x), (x, x, wide[0])):
        assert_same_outcome(torch.lerp, *given, widen=False)


def test_division_neither_overflows_nor_vanishes() -> None:
    x = torch.tensor([3e38 + 3e38j, 1e-38 + 1e-38j, 1 + 1j, 1e30 + 1e-30j])
    y = torch.tensor([3e38 + 3e38j, 1e-38 + 1e-38j, 1e30 + 1e30j, 1e30 + 1e30j])
    exact = (x.to(torch.complex128) / y.to(torch.complex128)).to(torch.complex64)
    torch.testing.assert_close((x.to("dml") / y.to("dml")).cpu(), exact, rtol=1e-6, atol=1e-37)
    by_zero = (torch.tensor([1 + 1j, -1 + 0j, 0j]).to("dml") / 0).cpu()
    assert by_zero[0].real == math.inf
    assert by_zero[1].real == -math.inf
    assert math.isnan(by_zero[2].real.item())


@dtypes(*COMPLEX)
def test_comparisons(dtype: torch.dtype) -> None:
    z = torch.tensor([1 + 1j, 1 - 1j, 0j, complex(math.nan, 0), complex(0, math.inf)], dtype=dtype)
    for function in (
        lambda z: z == z.conj(),
        lambda z: z != z.conj(),
        torch.isnan,
        torch.isinf,
        torch.isfinite,
        torch.isreal,
        torch.logical_not,
        lambda z: torch.isclose(z, z * (1 + 1e-9)),
        lambda z: torch.equal(z[:3], z[:3].clone()),
        lambda z: torch.allclose(z[:3], z[:3] + 1e-12),
        lambda z: (z.any(), z.all(), z.count_nonzero(), z.nonzero()),
        lambda z: z.bool(),
    ):
        assert_matches_cpu(function, z, widen=False)


OF_REALS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "pow", "eq", "lt", "maximum", "fmod")},
    **{name: getattr(torch, name) for name in ("atan2", "logical_or", "floor_divide", "xlogy")},
    "add with a factor": lambda x, y, out: torch.add(x, y, alpha=2, out=out),
    "sin": lambda x, y, out: torch.sin(x, out=out),
    "erf": lambda x, y, out: torch.erf(x, out=out),
    "sigmoid": lambda x, y, out: torch.sigmoid(x, out=out),
    "clamp": lambda x, y, out: torch.clamp(x, y, y + 1, out=out),
    "addcmul": lambda x, y, out: torch.addcmul(x, x, y, out=out),
}


@pytest.mark.parametrize("name", OF_REALS)
@dtypes(torch.float16, torch.float32, torch.float64, torch.int64)
def test_reals_into_complex_tensors(name: str, dtype: torch.dtype) -> None:
    x, y = numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype).abs() + 1
    for to in COMPLEX:
        for sizes in ((3, 4), (0,)):

            def into(x: torch.Tensor, y: torch.Tensor, to: torch.dtype = to, sizes: Any = sizes) -> torch.Tensor:
                result: torch.Tensor = OF_REALS[name](x, y, out=torch.empty(sizes, dtype=to, device=x.device))
                return result

            assert_matches_cpu(into, x, y, rtol=2e-3 if dtype == torch.float16 else 1e-5, atol=1e-5, widen=False)


@pytest.mark.allow_fallback
def test_what_takes_no_complex_tensor_for_its_result() -> None:
    """Or that accept one, but have no kernel."""
    x = numbers(4, 4, dtype=torch.float32)
    for function in (
        lambda x, out: torch.neg(x, out=out),
        lambda x, out: torch.bmm(x[None], x[None], out=out),
        lambda x, out: torch.gather(x, 0, x.long() * 0, out=out),
        lambda x, out: torch.where(x > 0, x, x, out=out),
        lambda x, out: torch.amax(x, 0, out=out),
        lambda x, out: torch.std(x, 0, out=out),
        lambda x, out: torch.var(x, 0, out=out),
        lambda x, out: torch.max(x, out=out),
        lambda x, out: torch.linalg.vector_norm(x, out=out),
        lambda x, out: torch.topk(x, 2, out=(out, out.real.long())),
        lambda x, out: torch.special.bessel_j0(x, out=out),
        lambda x, out: torch.normal(x, 0.0, out=out),
    ):
        assert_same_outcome(lambda x, f=function: f(x, torch.empty(0, dtype=torch.complex64, device=x.device)), x)


@pytest.mark.allow_fallback
def test_orderings_are_refused() -> None:
    z = torch.randn(3, dtype=torch.complex64)
    for function in (torch.lt, torch.maximum, torch.fmod, torch.atan2, torch.hypot, torch.remainder):
        for operand in (z, z.to("dml")):
            with pytest.raises((RuntimeError, TypeError)):  # torch 2.15 raises TypeError for some
                function(operand, operand)


@dtypes(*COMPLEX)
def test_powers_of_numbers_are_contiguous(dtype: torch.dtype) -> None:
    """As on the CPU; and all powers of 1 are 1, whatever the exponent."""
    z = numbers(3, 4, 2, dtype=dtype).permute(2, 0, 1)
    for number in (0.5 + 1j, 1, 2.5):
        assert_same_outcome(lambda z, number=number: torch.pow(number, z), z)
        assert_same_outcome(lambda z, out, number=number: torch.pow(number, z, out=out), z, z.new_empty(0))
    infinite = torch.tensor([complex(math.inf, 1), complex(math.nan, 0), complex(2, -math.inf)], dtype=dtype)
    assert torch.equal(torch.pow(1, infinite.to("dml")).cpu(), torch.ones(3, dtype=dtype))


def test_a_reversed_difference_makes_its_result_contiguous() -> None:
    x, y = numbers(3, 4).t(), numbers(3, 4).t()

    def into(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.rsub.Tensor_out(x, y, alpha=2, out=out)

    assert_same_outcome(into, x, y, x.new_empty(0))
    assert_same_outcome(into, x, y, x.new_empty(4, 3))


@pytest.mark.parametrize("where", ["cpu", "dml"])
@pytest.mark.parametrize("name", ["_foreach_addcmul", "_foreach_addcdiv"])
def test_lists_with_packed_numbers(name: str, where: str) -> None:
    function = getattr(torch.ops.aten, name).Tensor
    lists = [[numbers(3, 4) + 2, numbers(0), numbers(5) + 2] for _ in range(3)]
    values = numbers(3)
    want = function(*lists, values)
    ours = [[t.to("dml") for t in items] for items in lists]
    for got, expected in zip(function(*ours, values.to(where)), want, strict=True):
        torch.testing.assert_close(got.cpu(), expected)
    for got, expected in zip(function(*ours, values.conj().to(where)), function(*lists, values.conj()), strict=True):
        torch.testing.assert_close(got.cpu(), expected)
    for wrong in (numbers(2), numbers(3, 1), numbers()):
        for items, place in ((lists, "cpu"), (ours, where)):
            with pytest.raises(RuntimeError):
                function(*items, wrong.to(place))


def test_conjugates_of_real_numbers_in_place():
    """They equal the numbers: nothing is written, not even if elements share memory."""
    shared = torch.ones(1).expand(3).to("dml")
    one = torch.ones(1).to("dml").expand(3)
    for x in (shared, one, torch.arange(3).to("dml")):
        before = x.cpu().clone()
        assert x.conj_physical_() is x and torch.equal(x.cpu(), before)
