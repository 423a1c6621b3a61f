"""Functions of complex tensors: accuracy compared with the CPU's, special values, and identities of
signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_outcome
from tests.support.dtypes import dtypes
from tests.support.layouts import lay_out, layouts

Function = Callable[[torch.Tensor], torch.Tensor]
FUNCTIONS: dict[str, Function] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "sigmoid"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
            *("sgn", "abs", "angle", "neg", "square", "conj_physical", "sinc"),
        )
    },
    "silu": F.silu,
}
COMPLEX = (torch.complex64, torch.complex128)


def samples(count: int = 500) -> dict[str, torch.Tensor]:
    """Numbers of ordinary size, of any size, near the unit circle, and near the axes."""
    power = torch.exp2(torch.randint(-30, 30, (count,)).double())
    return {
        "normal": torch.randn(count, dtype=torch.complex128),
        "any size": torch.randn(count, dtype=torch.complex128) * power,
        "unit circle": torch.polar(1 + 1e-4 * torch.randn(count).double(), 6 * torch.rand(count).double()),
        "real axis": torch.complex(3 * torch.randn(count).double(), 1e-6 * torch.randn(count).double()),
        "imaginary axis": torch.complex(1e-6 * torch.randn(count).double(), 3 * torch.randn(count).double()),
    }


def worst(got: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest relative distance, in units of float32's rounding."""
    far = (got.to(exact.dtype) - exact).abs() / exact.abs()
    usual = (exact.abs() < 1e38) & (exact.abs() > 1e-36)
    return float(far[usual].max()) / 2**-24 if usual.any() else 0.0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name: str) -> None:
    """The error of complex64 against complex128 is at most slightly above the CPU's."""
    function = FUNCTIONS[name]
    for kind, z in samples().items():
        narrow = z.to(torch.complex64)
        exact = function(narrow.to(torch.complex128))
        ours, theirs = worst(function(narrow.to("dml")).cpu(), exact), worst(function(narrow), exact)
        assert ours <= max(1.5 * theirs, theirs + 1.5, 4.0), f"{kind}: {ours:.2f}; cpu: {theirs:.2f}"


@pytest.mark.parametrize("name", FUNCTIONS)
@dtypes(*COMPLEX)
def test_special_values(name: str, dtype: torch.dtype) -> None:
    """Infinities, NaN and both zeros give the CPU's results, up to the sign of zeros."""
    function = FUNCTIONS[name]
    values = (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan)
    for re, im in product(values, values):
        z = torch.tensor([complex(re, im)], dtype=dtype)
        got = function(z.to("dml")).cpu()
        # The CPU has two results: for single elements, and for vectors.
        allowed = [function(z), function(z.repeat(16))[:1]]
        assert any(_same(got, want) for want in allowed), f"{name}({z.item()}): {got.item()}; cpu: {allowed}"


def _parts(z: torch.Tensor) -> list[float]:
    return [z.item().real, z.item().imag] if z.is_complex() else [z.item()]


def _same(got: torch.Tensor, want: torch.Tensor) -> bool:
    nan = bool(want.isnan().any())
    return all(_alike(ours, theirs, nan) for ours, theirs in zip(_parts(got), _parts(want), strict=True))


def _alike(ours: float, theirs: float, nan: bool) -> bool:
    """In a number with a NaN part the sign of an infinity is not specified, as in C."""
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    if nan:
        ours, theirs = abs(ours), abs(theirs)
    return ours == theirs or abs(ours - theirs) <= 2e-6 * abs(theirs)


@pytest.mark.parametrize("name", ["exp", "sqrt", "abs", "neg", "angle", "sgn"])
@layouts()
@dtypes(*COMPLEX)
def test_layouts(name: str, layout: str, dtype: torch.dtype) -> None:
    assert_same_outcome(FUNCTIONS[name], lay_out(torch.randn(4, 6, dtype=dtype), layout), widen=False)


@dtypes(*COMPLEX)
def test_in_place_and_out(dtype: torch.dtype) -> None:
    z = torch.randn(3, 4, dtype=dtype)
    assert_matches_cpu(lambda z: z.clone().exp_(), z, widen=False)
    assert_matches_cpu(lambda z: torch.sin(z, out=torch.empty(0, dtype=dtype, device=z.device)), z, widen=False)
    assert_matches_cpu(lambda z: torch.exp(z, out=z.new_empty(3, 4, dtype=torch.complex128)), z, rtol=1e-5, widen=False)
    assert_same_outcome(lambda z: z.clone().abs_(), z)
    assert_same_outcome(lambda z: torch.exp(z, out=torch.empty(3, 4, device=z.device)), z)


def test_magnitudes_at_the_ends_of_the_range() -> None:
    z = torch.tensor([3e38 + 1e38j, 1e-40 + 1e-41j, 3e-45 + 4e-45j, 1e20 + 1e20j, 1e-30j])
    exact = z.to(torch.complex128).abs().float()
    torch.testing.assert_close(z.to("dml").abs().cpu(), exact, rtol=2e-7, atol=2e-45)
    quotient = z.to("dml") / z.to("dml").roll(0)
    torch.testing.assert_close(quotient.cpu(), torch.ones_like(z), rtol=1e-4, atol=1e-4)


@dtypes(*COMPLEX)
def test_conjugates_and_negatives_are_seen(dtype: torch.dtype) -> None:
    """Tensors with a conjugate or negative bit, and views of their parts."""
    z = torch.randn(3, 4, dtype=dtype)
    for function in (
        lambda z: z.conj() * 2,
        lambda z: z.conj().imag + z.imag,
        lambda z: z.conj().clone(),
        lambda z: z.mH @ z,
        lambda z: z.conj().resolve_conj(),
        lambda z: z.conj().imag.exp(),
        lambda z: z.conj().cpu(),
        lambda z: torch.zeros_like(z).conj().copy_(z),
        lambda z: torch.zeros_like(z).imag.copy_(z.real),
        lambda z: torch.view_as_real(z * 1j).sum(0),
        lambda z: torch.view_as_complex(torch.view_as_real(z) * 2),
        lambda z: torch.zeros_like(z).imag.add_(1),
    ):
        assert_matches_cpu(function, z, widen=False, rtol=1e-5, atol=1e-5)


@layouts()
@dtypes(torch.complex64, torch.complex128, torch.float32, torch.int64)
def test_conjugates_in_place(dtype: torch.dtype, layout: str) -> None:
    x = torch.randn(2, 3, 4, 5).to(dtype) if not dtype.is_complex else torch.randn(2, 3, 4, 5, dtype=dtype)
    for made in (lay_out(x, layout), lay_out(x, layout).conj(), torch._neg_view(lay_out(x, layout)), x[:0]):
        assert_same_outcome(lambda t: t.clone().conj_physical_(), made)
        assert_same_outcome(torch.conj_physical_, made.clone())
