"""Pointwise operators with subnormals, both zeros, infinities, NaN and the ends of the range, in
every float dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_same
from tests.support.dtypes import HALVES, dtypes
from tests.support.names import words

S = torch.special
INF, NAN = math.inf, math.nan
Function = Callable[..., torch.Tensor]

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
# In addition to the numbers that every dtype has.
NUMBERS = {
    torch.float32: [1e-45, 1e-40, 5.9e-39, 1.1754943e-38, 1e-30, 1e-20, 1e5, 1e10, 1e20, 2.5e38, 3.4028235e38],
    torch.float64: [5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-150, 1e5, 1e10, 1e150, 1e300, 1.4e308],
    torch.float16: [6e-8, 1e-6, 6e-5, 6.2e-5, 1e-3, 1e3, 3e4, 65504.0],
    torch.bfloat16: [9.2e-41, 1e-39, 1.17e-38, 1.18e-38, 1e-30, 1e5, 1e20, 3e38, 3.39e38],
}
MODERATE = [0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0, INF]

# Functions of the math library: subnormal arguments and results are exact on every adapter.
EXACT: dict[str, Function] = {
    name: getattr(torch, name)
    for name in words(
        """abs neg sgn sign sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh
        cosh tanh sigmoid erf erfc erfinv lgamma i0"""
    )
} | {"i0e": S.i0e, "i1": S.i1, "i1e": S.i1e}
# These do not support 16-bit dtypes.
EXACT_OF_WIDE: dict[str, Function] = {"erfcx": S.erfcx, "ndtri": S.ndtri}
# Functions that also add, multiply or compare, where an adapter may flush subnormals.
COMPOSED: dict[str, Function] = {
    "square": torch.square,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "relu": torch.relu,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "softsign": F.softsign,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "entr": S.entr,
    "ndtr": S.ndtr,
    "deg2rad": torch.deg2rad,
    "nan_to_num": torch.nan_to_num,
}
EXACT_OF_TWO: dict[str, Function] = {
    "div": torch.div,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "pow": torch.pow,
    "copysign": torch.copysign,
}
COMPOSED_OF_TWO: dict[str, Function] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "logaddexp": torch.logaddexp,
    "xlogy": torch.xlogy,
    "xlog1py": S.xlog1py,
    "heaviside": torch.heaviside,
}
# Errors in units in the last place, where they are more than 4.
ULP = {"erfcx": 8, "i0": 8, "i0e": 8, "i1": 8, "i1e": 8, "atanh": 8, "ndtr": 24, "logsigmoid": 8, "hypot": 4}


def numbers(dtype: torch.dtype) -> torch.Tensor:
    positive = [*NUMBERS[dtype], *MODERATE]
    return torch.tensor([sign * x for x in positive for sign in (1.0, -1.0)] + [NAN], dtype=torch.float64).to(dtype)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.meshgrid(numbers(dtype), numbers(dtype), indexing="ij")
    return x.flatten(), y.flatten()


def assert_exact(
    got: torch.Tensor, exact: torch.Tensor, operands: tuple[torch.Tensor, ...], ulp: float, flushed: bool = False
) -> None:
    """Assert that `got` is within `ulp` units in the last place of `exact`, which is in float64;
    also compares kinds of numbers and signs of zeros.

    With `flushed` an adapter may flush subnormal numbers to zero: elements with such an operand are
    skipped, and errors below the smallest normal number do not count.
    """
    info = torch.finfo(got.dtype)
    wide = torch.finfo(torch.float32 if got.dtype == torch.bfloat16 else got.dtype)
    rounded = exact.to(got.dtype)
    least = torch.tensor(info.smallest_normal * info.eps, dtype=torch.float64)
    unit = torch.maximum(rounded.abs().double() * info.eps, least)
    error = (got.double() - exact).abs() / unit
    near = (error <= ulp) | (got == rounded) | (got.isnan() & exact.isnan())
    near &= (got != 0) | (exact != 0) | (got.signbit() == exact.signbit())
    if flushed and got.dtype != torch.float16:
        near |= (got.double() - exact).abs() < wide.smallest_normal
        for x in operands:
            near |= (x != 0) & (x.abs() < wide.smallest_normal)
    bad = [(*(x[i].item() for x in operands), got[i].item(), exact[i].item()) for i in (~near).nonzero().flatten()]
    assert not bad, f"{len(bad)} of {len(got)} (operands, device, exact): {bad[:5]}"


def check(
    name: str, f: Function, operands: tuple[torch.Tensor, ...], device: torch.device, flushed: bool = False
) -> None:
    exact = f(*(x.double() for x in operands))
    got = f(*(x.to(device) for x in operands)).cpu()
    assert_exact(got, exact, operands, ULP.get(name, 4), flushed)


@dtypes(FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_functions_of_one(name: str, dtype: torch.dtype, device: torch.device) -> None:
    x = numbers(dtype)
    if dtype == torch.float64:
        x = x[(x == 0) | (x.abs() > 1e-300)] if name == "log1p" else x  # The CPU's is inexact.
    check(name, EXACT[name], (x,), device)


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("name", EXACT_OF_WIDE)
def test_functions_without_16_bits(name: str, dtype: torch.dtype, device: torch.device) -> None:
    x = numbers(dtype)
    x = x[x.abs() < 1e200]  # The CPU's erfcx overflows internally.
    check(name, EXACT_OF_WIDE[name], (x,), device)


@dtypes(FLOATS)
@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_of_one(name: str, dtype: torch.dtype, device: torch.device) -> None:
    x = numbers(dtype)
    if name == "softshrink":
        x = x[x.abs() > 0.5]  # The CPU's zeros are signed in scalar code.
    if name == "ndtr" and dtype in HALVES:
        x = x[x != -3]  # PyTorch composes it of rounded steps.
    check(name, COMPOSED[name], (x,), device, flushed=True)


@dtypes(FLOATS)
@pytest.mark.parametrize("name", EXACT_OF_TWO)
def test_functions_of_two(name: str, dtype: torch.dtype, device: torch.device) -> None:
    check(name, EXACT_OF_TWO[name], pairs(dtype), device)


@dtypes(FLOATS)
@pytest.mark.parametrize("name", COMPOSED_OF_TWO)
def test_composed_functions_of_two(name: str, dtype: torch.dtype, device: torch.device) -> None:
    x, y = pairs(dtype)
    if name in ("fmax", "fmin") and dtype in HALVES:
        x, y = x[x != y], y[x != y]  # The sign of the CPU's zero depends on the dtype.
    check(name, COMPOSED_OF_TWO[name], (x, y), device, flushed=True)


@dtypes(FLOATS)
def test_remainders_are_exact(dtype: torch.dtype, device: torch.device) -> None:
    """The CPU's vectorised ones are NaN if the quotient is large."""
    x, y = pairs(dtype)

    def rest(a: float, b: float) -> float:
        return NAN if math.isinf(a) or b == 0 or math.isnan(a) or math.isnan(b) else math.fmod(a, b)

    exact = torch.tensor([rest(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], dtype=torch.float64)
    assert_exact(torch.fmod(x.to(device), y.to(device)).cpu(), exact, (x, y), 0)
    crosses = (exact != 0) & (exact.signbit() != y.signbit())
    modulo = torch.remainder(x.to(device), y.to(device)).cpu()
    assert_exact(modulo, torch.where(crosses, exact + y.double(), exact), (x, y), 0.5)


@dtypes(FLOATS)
def test_conversions_keep_subnormals(dtype: torch.dtype, device: torch.device) -> None:
    x = numbers(dtype)
    for to in FLOATS:
        expected, got = x.to(to), x.to(device).to(to).cpu()
        same = (got == expected) & (got.signbit() == expected.signbit()) | got.isnan() & expected.isnan()
        assert bool(same.all()), f"{dtype} to {to}: {x[~same].tolist()}: {got[~same].tolist()}"


@dtypes(FLOATS)
def test_rounding_to_integers(dtype: torch.dtype, device: torch.device) -> None:
    """Halves, zeros of both signs, and numbers beyond 32 bits, for which some adapters' own
    instructions are wrong.
    """
    x = torch.arange(-9, 9.5, 0.5, dtype=torch.float64)
    around = [2.0**k + d for k in (23, 31, 32, 40, 51, 52, 53) for d in (-1.5, -0.5, 0, 0.5, 0.7, 1.5)]
    x = torch.cat([x, 0.3 * x, torch.tensor([*around, -0.0, 5e-324, 1.7e308, math.inf, math.nan], dtype=torch.float64)])
    x = torch.cat([x, -x]).to(dtype)
    for name in ("round", "trunc", "floor", "ceil", "frac"):
        function = getattr(torch, name)
        expected, got = function(x), function(x.to(device)).cpu()
        same = (got == expected) & (got.signbit() == expected.signbit()) | got.isnan() & expected.isnan()
        assert bool(same.all()), f"{name}: {x[~same].tolist()}: {got[~same].tolist()}"


def test_signs_of_large_odd_powers(device: torch.device) -> None:
    """Whether an exponent is odd is found by rounding its half."""
    x = torch.tensor([-math.inf, -1.0, -0.0, -1.0000000000000002], dtype=torch.float64)
    for exponent in (2.0**53 - 1, 2.0**52 + 1, 2.0**33 + 1, 2.0**31 - 1, 3.0, 2.0**53, -(2.0**53 - 1)):
        y = torch.full_like(x, exponent)
        assert_same(torch.pow(x.to(device), y.to(device)), torch.pow(x, y))


@dtypes(FLOATS)
def test_zeros_keep_their_signs(dtype: torch.dtype, device: torch.device) -> None:
    a = torch.tensor([0.0, 0.0, -0.0, -0.0, 1.0], dtype=dtype)
    b = torch.tensor([0.0, -0.0, 0.0, -0.0, 1.0], dtype=dtype)
    for f in (torch.fmin, torch.fmax, torch.maximum, torch.minimum):
        assert torch.equal(f(a.to(device), b.to(device)).cpu().signbit(), a.signbit())
    for f in (torch.sgn, torch.sign):
        assert torch.equal(f(a.to(device)).cpu().signbit(), torch.zeros(5, dtype=torch.bool))
    x = torch.tensor([0.0, -0.0, 0.3, -0.3, 0.5, -0.5, NAN], dtype=dtype)
    assert torch.equal(F.softshrink(x.to(device)).cpu().signbit()[:-1], F.softshrink(x).signbit()[:-1])
    for row in ([-0.0, 0.0], [0.0, -0.0], [-1.0, 0.0, -0.0], [1.0, -0.0, 0.0]):
        x = torch.tensor(row, dtype=dtype)
        for f in (torch.amax, torch.amin, lambda t: t.max(0).values):
            assert f(x.to(device)).cpu().signbit() == f(x).signbit(), f"{f} of {row}"
        # In a reduction over everything the CPU selects the last one.
        assert torch.aminmax(x.to(device)).max.cpu().signbit() == x.amax().signbit()


@dtypes(torch.float32, torch.float64)
def test_alpha_of_zero_leaves_nothing_of_a_product(dtype: torch.dtype, device: torch.device) -> None:
    x = torch.tensor([[-INF, 2.0], [NAN, -4.0]], dtype=dtype)
    bias = torch.tensor([[0.0, -0.0], [-0.0, 3.0]], dtype=dtype)
    for f in (torch.addmm, lambda t, m, n, **k: torch.addmv(t[0], m, n[0], **k)):
        for beta in (0, 1, 2):
            got = f(bias.to(device), x.to(device), x.to(device), alpha=0, beta=beta).cpu()
            expected = f(bias, torch.ones_like(x), torch.ones_like(x), alpha=0, beta=beta)
            assert torch.equal(got, expected) and torch.equal(got.signbit(), expected.signbit())


@dtypes(torch.float32)
def test_spread_of_any_size(dtype: torch.dtype, device: torch.device) -> None:
    """The CPU sums float32 in float64: squares neither overflow nor underflow."""
    for scale in (1e-30, 1e-25, 1e-12, 1.0, 1e12, 1e18, 2.5e38):
        for row in ([-1.0, 1.0, -1.0], [1.0, 1.0, 0.999], [1.0, 0.5, 0.25, 0.125] * 100):
            x = (torch.tensor(row, dtype=torch.float64) * scale).to(dtype)
            for f in (torch.std, torch.var, lambda t: torch.std(t, correction=0)):
                exact = f(x.double()).to(dtype)
                torch.testing.assert_close(f(x.to(device)).cpu(), exact, rtol=1e-5, atol=1e-40)


@dtypes(FLOATS)
def test_ldexp_rounds_once(dtype: torch.dtype, device: torch.device) -> None:
    info = torch.finfo(dtype)
    eps, least = info.eps, info.tiny * info.eps
    row = [
        1.0,
        1.5,
        1 + eps,
        2 - eps,
        0.75,
        info.max,
        info.tiny,
        info.tiny * (1 + eps),
        least,
        3 * least,
        0.0,
        INF,
        NAN,
    ]
    x = torch.tensor([sign * x for x in row for sign in (1, -1)], dtype=torch.float64).to(dtype)
    around = [0, 1, 7, 15, 24, 100, 126, 127, 149, 200, 261, 1022, 1023, 1074, 1075, 2098, 99999]
    k = torch.tensor([sign * k for k in around for sign in (1, -1)])
    a, b = x.repeat_interleave(len(k)), k.repeat(len(x))
    for exponents in (b, b.int(), b.clamp(-128, 127).to(torch.int8), b.clamp(0, 255).to(torch.uint8)):
        got, expected = torch.ldexp(a.to(device), exponents.to(device)).cpu(), torch.ldexp(a, exponents)
        assert_same(got, expected, 0, 0)
        assert torch.equal(got[~got.isnan()].signbit(), expected[~got.isnan()].signbit())


@dtypes(torch.float32, torch.float64)
def test_spread_and_mean_at_the_end_of_the_range(dtype: torch.dtype, device: torch.device) -> None:
    """The CPU's mean, and therefore the deviation, overflows in intermediate results."""
    for most in (1.4e308, 1.79e308) if dtype == torch.float64 else (2.5e38, 3.4e38):
        for sign in (1, -1):
            equal = torch.full((2, 3000), sign * most, dtype=dtype, device=device)
            for n in (2, 3, 100, 3000):
                for f in (torch.var, torch.std):
                    assert f(equal[:, :n], 1).tolist() == [0, 0]
                    assert f(equal[:, :n]).item() == 0
            x = torch.tensor([1.0, 0.9, 0.95, 1.0], dtype=dtype) * (sign * most)
            exact = (x / most).double().std() * most
            torch.testing.assert_close(torch.std(x.to(device)).cpu().double(), exact, rtol=1e-6, atol=0)


@dtypes(torch.float32, torch.float64)
def test_floor_division_does_not_overflow_below_its_quotient(dtype: torch.dtype, device: torch.device) -> None:
    info = torch.finfo(dtype)
    for most in (1.4e308, info.max) if dtype == torch.float64 else (2.5e38, info.max):
        x = torch.tensor([most, most / 2, 1.0, 0.9, 0.5, 7.0, info.tiny], dtype=dtype)
        x = torch.cat([x, -x])
        a, b = (part.flatten() for part in torch.meshgrid(x, x, indexing="ij"))
        for f in (torch.floor_divide, lambda a, b: torch.div(a, b, rounding_mode="floor")):
            expected, got = f(a, b), f(a.to(device), b.to(device)).cpu()
            assert_same(got, expected, 0, 0)
            assert not got[(a / b).isfinite()].isinf().any()


@dtypes(torch.float32, torch.float64)
def test_lerp_does_not_overflow_between_numbers(dtype: torch.dtype, device: torch.device) -> None:
    most = torch.finfo(dtype).max
    start = torch.tensor([most, -most, most, -most / 2, INF, NAN], dtype=dtype)
    end = torch.tensor([-most, most, most, most, 1.0, 1.0], dtype=dtype)
    for weight in (0.0, 0.25, 0.5, 0.75, 1.0):
        got = torch.lerp(start.to(device), end.to(device), weight).cpu()
        exact = (start / 4 * (1 - weight) + end / 4 * weight) * 4
        torch.testing.assert_close(got[:4], exact[:4])
        assert torch.equal(got[4:].isfinite(), torch.lerp(start, end, weight)[4:].isfinite())


def test_powers_of_large_odd_integers_are_odd(device: torch.device) -> None:
    x = torch.tensor([-1.0, 1.0, -3.0, -0.5, -0.0, 0.0, -INF])
    for exponent in (1e10, 9999999999.0, -9999999999.0, 16777217.0, -16777217.0):
        assert torch.equal(torch.pow(x.to(device), exponent).cpu(), torch.pow(x.double(), exponent).float())
        on_cpu, on_device = x.clone().requires_grad_(), x.to(device).requires_grad_()
        torch.pow(on_cpu, exponent).sum().backward()
        torch.pow(on_device, exponent).sum().backward()
        assert on_cpu.grad is not None and on_device.grad is not None
        torch.testing.assert_close(on_device.grad.cpu(), on_cpu.grad, equal_nan=True)


def around_zero(dtype: torch.dtype) -> torch.Tensor:
    """Zeros, the smallest numbers of both signs, NaN and infinities."""
    tiny = torch.finfo(dtype).tiny
    least = tiny * torch.finfo(dtype).eps
    numbers = [0.0, least, 3 * least, tiny / 2, tiny, 1.0, float("inf")]
    return torch.tensor([*numbers, *(-number for number in numbers), float("nan")], dtype=torch.float64).to(dtype)


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
CHOICES = ("maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max")
REDUCTIONS = ("amax", "amin", "argmax", "argmin", "aminmax", "any", "all")
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "hardshrink": lambda x: F.hardshrink(x, 0.0),
    "hardshrink_of_subnormals": lambda x: F.hardshrink(x, torch.finfo(x.dtype).tiny / 2),
    "hardtanh": lambda x: F.hardtanh(x, -1.0, 1.0),
    "clamp": lambda x: x.clamp(0.0, 1.0),
}


@pytest.mark.smoke
@dtypes(FLOATS)
def test_comparisons_tell_subnormals_from_zero(dtype: torch.dtype, device: torch.device) -> None:
    x = around_zero(dtype)
    for one in x[:-1]:  # The last is NaN. This is first, since eq must not reuse a kernel that torch.equal compiled.
        for other in x[:-1]:
            assert torch.equal(one.to(device), other.to(device)) == torch.equal(one, other)
    x, y = x.repeat_interleave(len(x)), x.repeat(len(x))
    for name in COMPARISONS + CHOICES:
        function = getattr(torch, name)
        assert_same(function(x.to(device), y.to(device)), function(x, y), 0, 0)
    for name in COMPARISONS:
        assert_same(getattr(torch, name)(x.to(device), 0), getattr(torch, name)(x, 0), 0, 0)
    assert_same(x.to(device).bool(), x.bool())
    assert_same(torch.logical_not(x.to(device)), torch.logical_not(x))
    numbers = around_zero(dtype)[:-1]
    pairs = torch.stack(torch.broadcast_tensors(numbers[:, None], numbers), -1)
    for name in REDUCTIONS:
        ours, theirs = getattr(torch, name)(pairs.to(device), dim=-1), getattr(torch, name)(pairs, dim=-1)
        for got, want in zip(*((one if isinstance(one, tuple) else (one,)) for one in (ours, theirs)), strict=True):
            assert torch.equal(got.cpu(), want), name  # Of zeros of both signs either may be the extremum.


@dtypes(FLOATS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_keep_subnormals(name: str, dtype: torch.dtype, device: torch.device) -> None:
    x = around_zero(dtype)
    ours, theirs = x.to(device).requires_grad_(), x.clone().requires_grad_()
    got, want = ACTIVATIONS[name](ours), ACTIVATIONS[name](theirs)
    assert_same(got, want, 0, 0)
    for one in (got, want):
        one.backward(torch.full_like(one, 1.5))
    assert_same(ours.grad, theirs.grad, 0, 0)


@dtypes(torch.float32, torch.float64)
def test_infinities_and_integers_of_subnormals(dtype: torch.dtype, device: torch.device) -> None:
    tiny = torch.finfo(dtype).tiny
    x = torch.tensor([tiny / 2, -tiny / 2, tiny * torch.finfo(dtype).eps], dtype=dtype)
    for y in (0.0, math.inf):
        y = torch.full_like(x, y)
        assert_same(torch.xlogy(x.to(device), y.to(device)), torch.xlogy(x, y), 0, 0)
    divisor = x[2].expand(3).clone()
    quotient = torch.div(x.to(device), divisor.to(device), rounding_mode="floor")
    assert_same(quotient, torch.div(x, divisor, rounding_mode="floor"), 0, 0)


def tiny(dtype: torch.dtype) -> float:
    """The largest power of two that is subnormal in the dtype of the computation."""
    return torch.finfo(dtype).tiny / 2


A = torch.ops.aten
# Functions that use or compare a product, and numbers for which the product is subnormal.
WITH_PRODUCTS: dict[str, Function] = {
    "addcmul": lambda x, y: torch.addcmul(0 * y.nan_to_num(0, 0, 0), x, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(torch.zeros_like(x), x, y, value=0.25),
    "foreach_addcmul": lambda x, y: torch._foreach_addcmul([torch.zeros_like(x)], [x], [y], [0.5])[0],
    "foreach_addcdiv": lambda x, y: torch._foreach_addcdiv([torch.ones_like(x)], [x], [y], [0.25])[0],
    "add": lambda x, y: torch.add(x, y, alpha=tiny(x.dtype)),
    "sub": lambda x, y: torch.sub(x, y, alpha=-tiny(x.dtype)),
    "rsub": lambda x, y: torch.rsub(x, y, alpha=2 * tiny(x.dtype)),
    "lerp": lambda x, y: torch.lerp(torch.zeros_like(x), y, tiny(x.dtype)) + x,
    "pow": lambda x, y: torch.pow(x, -2),
    "xlogy": torch.xlogy,
    "entr": lambda x, y: S.entr(x),
    "sinc": lambda x, y: torch.sinc(x),
    "heaviside": torch.heaviside,
    "rrelu": lambda x, y: F.rrelu(x, 0.25, 0.25),
    "rrelu_training": lambda x, y: F.rrelu(x, 0.0, 0.0, training=True),
    "logit": lambda x, y: torch.logit(x, 0.0),
    "logit_backward": lambda x, y: A.logit_backward(y, x, 0.0),
    "logit_backward_of_halves": lambda x, y: A.logit_backward(y, x, 0.5),
    "softplus": lambda x, y: F.softplus(x, tiny(x.dtype), 1e-30),
    "softplus_threshold": lambda x, y: F.softplus(x.clamp(-1, 1), 1.0, -tiny(x.dtype)),
    "softplus_backward": lambda x, y: A.softplus_backward(y, x.clamp(-1, 1), 1.0, -tiny(x.dtype)),
}
# For bfloat16 the CPU rounds between the steps.
WITH_PRODUCTS_OF_WIDE: dict[str, Function] = {
    "addr": lambda x, y: torch.addr(0 * x[:1], x[::40], y[:50], alpha=tiny(x.dtype)).flatten(),
    "binary_cross_entropy_backward": lambda x, y: A.binary_cross_entropy_backward(x, y, torch.ones_like(y), None, 1),
}


@dtypes(torch.float32, torch.float64, torch.bfloat16)
@pytest.mark.parametrize("name", WITH_PRODUCTS)
def test_products_inside_of_functions_keep_subnormals(name: str, dtype: torch.dtype, device: torch.device) -> None:
    check_products(WITH_PRODUCTS[name], name, dtype, device)


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("name", WITH_PRODUCTS_OF_WIDE)
def test_products_inside_of_wide_functions(name: str, dtype: torch.dtype, device: torch.device) -> None:
    check_products(WITH_PRODUCTS_OF_WIDE[name], name, dtype, device)


def check_products(f: Function, name: str, dtype: torch.dtype, device: torch.device) -> None:
    """A product that an adapter flushes does not lead to an infinity, NaN or wrong number; a sum
    may lose its two terms.
    """
    x, y = pairs(dtype)
    if name.startswith("logit_backward"):
        x, y = x[~x.isnan()], y[~x.isnan()]  # The CPU's vector code gives 0 there.
    want, got = f(x, y), f(x.to(device), y.to(device)).cpu()
    info = torch.finfo(dtype)
    near = (got.double() - want.double()).abs() <= want.double().abs() * 8 * info.eps + 2 * info.tiny
    near &= got.isfinite() & want.isfinite()
    near |= (got == want) | (got.isnan() & want.isnan())
    bad = [(i, got[i].item(), want[i].item()) for i in (~near).nonzero().flatten().tolist()]
    operands = [(x[i].item(), y[i].item()) for i, *_ in bad if len(x) == len(got)]
    assert not bad, f"{len(bad)} of {len(got)} (element, device, CPU): {bad[:5]}; operands: {operands[:5]}"
