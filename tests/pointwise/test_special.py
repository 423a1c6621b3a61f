"""Special functions: accuracy, special values, dtypes, layouts, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_outcome
from tests.support.dtypes import FLOATS, dtypes
from tests.support.names import words

S = torch.special
INF, NAN = float("inf"), float("nan")

# Functions of one number, and the ranges in which they are compared.
UNARY: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[float, float]]]] = {
    "lgamma": (torch.lgamma, [(1e-3, 3), (3, 100), (-9.9, -0.1), (1e3, 1e10)]),
    "digamma": (torch.digamma, [(1e-3, 3), (3, 100), (-9.9, -0.1), (1e3, 1e10)]),
    "trigamma": (lambda x: torch.polygamma(1, x), [(1e-3, 3), (3, 100), (-9.9, -0.1)]),
    "polygamma": (lambda x: torch.polygamma(4, x), [(0.01, 3), (3, 100)]),
    "mvlgamma": (lambda x: torch.mvlgamma(x, 3), [(1.1, 3), (3, 100)]),
    "erfinv": (torch.erfinv, [(-1, 1), (0.9, 1), (-1e-3, 1e-3)]),
    "erfcx": (S.erfcx, [(-5, 0), (0, 5), (5, 1e3)]),
    "ndtri": (S.ndtri, [(0, 1), (1e-30, 1e-3)]),
    "log_ndtr": (S.log_ndtr, [(-100, -1), (-1, 5)]),
    "entr": (S.entr, [(0, 5)]),
    "i0": (torch.i0, [(-8, 8), (8, 80)]),
    "i0e": (S.i0e, [(-8, 8), (8, 1e4)]),
    "i1": (S.i1, [(-8, 8), (8, 80)]),
    "i1e": (S.i1e, [(-8, 8), (8, 1e4)]),
    "bessel_j0": (S.bessel_j0, [(-8, 8), (8, 60)]),
    "bessel_j1": (S.bessel_j1, [(-8, 8), (8, 60)]),
    "bessel_y0": (S.bessel_y0, [(1e-3, 8), (8, 60)]),
    "bessel_y1": (S.bessel_y1, [(1e-3, 8), (8, 60)]),
    "modified_bessel_i0": (S.modified_bessel_i0, [(-8, 8), (8, 80)]),
    "modified_bessel_i1": (S.modified_bessel_i1, [(-8, 8), (8, 80)]),
    "modified_bessel_k0": (S.modified_bessel_k0, [(1e-3, 2), (2, 80)]),
    "modified_bessel_k1": (S.modified_bessel_k1, [(1e-3, 2), (2, 80)]),
    "scaled_modified_bessel_k0": (S.scaled_modified_bessel_k0, [(1e-3, 2), (2, 1e3)]),
    "scaled_modified_bessel_k1": (S.scaled_modified_bessel_k1, [(1e-3, 2), (2, 1e3)]),
    "spherical_bessel_j0": (S.spherical_bessel_j0, [(-1, 1), (1, 100)]),
    "airy_ai": (S.airy_ai, [(-2, 2), (2, 10)]),
}

POLYNOMIALS = [name for name in dir(S) if "polynomial" in name]

BINARY: dict[str, tuple[Callable[..., torch.Tensor], tuple[float, float], tuple[float, float]]] = {
    "igamma": (torch.igamma, (0.05, 80), (0.01, 100)),
    "igammac": (torch.igammac, (0.05, 80), (0.01, 100)),
    "zeta": (S.zeta, (1.1, 12), (0.1, 30)),
}

# The accuracy of the CPU's own f64 results for these.
CPU_ERROR = {
    "trigamma": 2e-9,
    "bessel_j0": 5e-7,
    "bessel_j1": 5e-7,
    "bessel_y0": 1e-6,
    "bessel_y1": 1e-6,
    "airy_ai": 5e-7,
    "igamma": 1e-8,
    "igammac": 1e-8,
}

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 10.0, -10.5, 1e-30, 100.0, 1e10, INF, -INF, NAN]


def spread(low: float, high: float, n: int = 400) -> torch.Tensor:
    """Uniform, and if the range has one sign and is wide, also uniform in the logarithm."""
    uniform = low + (high - low) * torch.rand(n, dtype=torch.float64)
    if low <= 0 or high / low < 100:
        return uniform
    return torch.cat([uniform, low * (high / low) ** torch.rand(n, dtype=torch.float64)])


def check_accuracy(name: str, function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> None:
    """f32 and f64 results, compared with the CPU's in f64. Around zeros of the function errors are
    absolute.
    """
    for dtype, digits in ((torch.float32, 2e-6), (torch.float64, 0.0)):
        given = [x.to(dtype) for x in arguments]
        wanted = function(*(x.double() for x in given))
        got = function(*(x.to("dml") for x in given)).cpu().double()
        relative = max(digits, CPU_ERROR.get(name, 1e-11))
        torch.testing.assert_close(got, wanted, rtol=relative, atol=relative)


@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name: str) -> None:
    function, ranges = UNARY[name]
    for low, high in ranges:
        check_accuracy(name, function, spread(low, high))


@pytest.mark.parametrize("name", BINARY)
def test_accuracy_of_two(name: str) -> None:
    function, first, second = BINARY[name]
    x, y = (low + (high - low) * torch.rand(2000, dtype=torch.float64) for low, high in (first, second))
    check_accuracy(name, function, x, y)


@pytest.mark.parametrize("name", words("igamma igammac"))
def test_incomplete_gamma_of_large_arguments(name: str) -> None:
    """Both large and close to each other, where series would take thousands of terms."""
    a = 10 ** (2 + 2.5 * torch.rand(500, dtype=torch.float64))
    x = a * (1 + (torch.rand(500, dtype=torch.float64) - 0.5) * 4 / a.sqrt())
    function = BINARY[name][0]
    assert_same(function(a.to("dml"), x.to("dml")), function(a, x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    function = getattr(S, name)
    degrees = torch.tensor([-1.0, 0, 1, 2, 3, 4.7, 5, 6, 7, 8, 9, 12, 20])
    x = torch.cat([torch.linspace(-1.2, 1.2, 37), torch.tensor([0.0, 0.5, 1.0, -1.0, 4.0, -7.0])])
    x = x[(x.abs() - 1).abs() > 1e-6] if "shifted" not in name else x
    grid = torch.meshgrid(x.double(), degrees.double(), indexing="ij")
    assert_matches_cpu(function, *(g.contiguous() for g in grid), rtol=1e-11, atol=1e-10)
    single = [g.float() for g in grid]
    wanted = function(*(g.double() for g in single))
    got = function(*(g.to("dml") for g in single)).cpu()
    # The recurrences lose digits where terms cancel.
    assert_same(got.double(), wanted, rtol=2e-4, atol=2e-4)
    ends = torch.tensor([1.0, -1.0, 0.0])
    for n in range(12):
        assert_matches_cpu(function, ends, torch.full((3,), float(n)), terms=4)
    assert_matches_cpu(lambda x: function(x, 3), torch.rand(5))
    assert_matches_cpu(lambda n: function(0.3, n), torch.arange(5.0))
    assert_matches_cpu(function, torch.tensor([2, 3]), torch.tensor([3, 2]))


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_special_values(name: str, dtype: torch.dtype) -> None:
    """Which results are NaN, infinite, and zeros of which sign."""
    function = getattr(S, name)
    numbers = torch.tensor([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1e-30, -1e-30, 1e30, -1e30, INF, -INF, NAN], dtype=dtype)
    x, n = (g.contiguous() for g in torch.meshgrid(numbers, torch.arange(-1, 24, dtype=dtype), indexing="ij"))
    wanted, got = function(x, n), function(x.to("dml"), n.to("dml")).cpu()
    same = (wanted.isnan() == got.isnan()) & (wanted.isinf() == got.isinf())
    same &= (wanted != 0) | (got != 0) | (wanted.signbit() == got.signbit())
    wrong = torch.stack([x, n, got, wanted], -1)[~same]
    assert not len(wrong), f"x, n, device, CPU: {wrong.tolist()}"


@pytest.mark.parametrize("kind", "tuvw")
def test_polynomials_of_high_degree_just_outside_of_their_interval(kind: str) -> None:
    """There they grow so slowly that a recurrence would take minutes."""
    for degree in (5000.0, 16777215.0, 16777216.0):
        for excess in (2**-52, 2**-50, 2**-40):
            t = math.acosh(1 + excess)
            right, left = {
                "t": (math.cosh(degree * t),) * 2,
                "u": (math.sinh((degree + 1) * t) / math.sinh(t),) * 2,
                "v": (
                    math.cosh((degree + 0.5) * t) / math.cosh(t / 2),
                    math.sinh((degree + 0.5) * t) / math.sinh(t / 2),
                ),
                "w": (
                    math.sinh((degree + 0.5) * t) / math.sinh(t / 2),
                    math.cosh((degree + 0.5) * t) / math.cosh(t / 2),
                ),
            }[kind]
            x = torch.tensor([1 + excess, -1 - excess], dtype=torch.float64, device="dml")
            expected = torch.tensor([right, left if degree % 2 == 0 else -left], dtype=torch.float64)
            got = getattr(S, f"chebyshev_polynomial_{kind}")(x, degree)
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-12, atol=0)
    x = torch.tensor([1 + 2**-52, -2.0, math.inf, 1 + 2**-52], dtype=torch.float64, device="dml")
    degrees = torch.tensor([2.0**53, 1e6, 1e6, 2.0**62], dtype=torch.float64, device="dml")
    assert getattr(S, f"chebyshev_polynomial_{kind}")(x, degrees).isnan().all()


def test_polynomial_of_an_infinite_degree_is_zero() -> None:
    x = torch.tensor([0.3, 2.0], device="dml")
    for name in POLYNOMIALS:
        assert getattr(S, name)(x, torch.tensor(INF, device="dml")).tolist() == [0.0, 0.0]


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL, dtype=dtype)
    if name == "trigamma":
        # At the poles left of zero the CPU's results are large numbers, from the rounding errors of
        # a sine.
        x = x[x != -1]
    if "bessel" in name:
        # The CPU reduces large angles with f32's pi.
        x = x[x != 1e10]
    digits = 1e-5 if dtype == torch.float32 else max(1e-12, CPU_ERROR.get(name, 0))
    assert_matches_cpu(UNARY[name][0], x, rtol=digits, atol=digits)


@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two(name: str) -> None:
    x, y = torch.meshgrid(torch.tensor(SPECIAL), torch.tensor(SPECIAL), indexing="ij")
    assert_matches_cpu(BINARY[name][0], x.contiguous(), y.contiguous(), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*UNARY, *BINARY, "nextafter", "hermite_polynomial_h", "angle"])
def test_dtypes(name: str) -> None:
    """Every dtype gives the CPU's dtype and value, or the CPU's error."""
    function = (UNARY | BINARY)[name][0] if name in UNARY | BINARY else getattr(S if "poly" in name else torch, name)
    count = 1 if name in UNARY or name == "angle" else 2
    for dtype in (torch.float16, torch.bfloat16, torch.uint8, torch.int16, torch.int64, torch.bool):
        base = torch.tensor([0.5, 0.25, 0.75]) if name in ("erfinv", "ndtri") else torch.tensor([3.0, 2.0, 4.5])
        assert_same_outcome(function, *[base.to(dtype)] * count, widen=name != "nextafter")


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfinv", "i0", "bessel_j0", "airy_ai"])
def test_layouts(name: str) -> None:
    function = UNARY[name][0]
    x = torch.rand(5, 6, 7) * 0.9 + 0.05
    for view in (lambda t: t.transpose(0, 2), lambda t: t[::2, :, 1::3], lambda t: t[:, :1].expand(5, 4, 7)):
        assert_matches_cpu(lambda t, view=view: function(view(t)), x)
    assert_matches_cpu(function, torch.rand(0, 3))
    assert_matches_cpu(function, torch.tensor(0.5))


@pytest.mark.parametrize("name", words("lgamma digamma erfinv i0"))
def test_in_place_and_out(name: str) -> None:
    x = torch.rand(3, 4) * 0.8 + 0.1
    assert_matches_cpu(lambda t: getattr(t.clone(), name + "_")(), x)
    out = torch.empty(0, device="dml")
    assert getattr(torch, name)(x.to("dml"), out=out) is out
    assert_same(out, getattr(torch, name)(x))
    with pytest.raises(RuntimeError, match="can't be cast"):
        getattr(torch, name)(x.to("dml"), out=torch.empty(3, 4, device="dml", dtype=torch.int64))


@pytest.mark.parametrize(
    "name", words("lgamma digamma trigamma mvlgamma erfinv erfcx ndtri log_ndtr i0 i0e i1 i1e entr")
)
def test_gradients(name: str) -> None:
    x = torch.rand(20, dtype=torch.float64) * 0.8 + (1.1 if name == "mvlgamma" else 0.1)
    assert_matches_cpu(UNARY[name][0], x.requires_grad_(), rtol=1e-9, atol=1e-9)


def test_gradients_of_two() -> None:
    a, x = torch.rand(20) * 5 + 0.1, (torch.rand(20) * 5).requires_grad_()
    assert_matches_cpu(torch.igamma, a, x)
    assert_matches_cpu(torch.igammac, a, x)
    assert_matches_cpu(S.zeta, torch.rand(5) + 1.5, (torch.rand(5) + 0.5).requires_grad_())


def test_wrong_orders() -> None:
    x = torch.rand(3, device="dml")
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="greater than or equal to 1"):
        torch.mvlgamma(x, 0)
    with pytest.raises(RuntimeError, match="boolean"):
        torch.mvlgamma(x > 0, 1)


@dtypes(FLOATS)
def test_nextafter(dtype: torch.dtype) -> None:
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0**-14, -(2.0**-14), 2.0**-13, 0.3, -7.7, INF, -INF, NAN])
    limits = torch.finfo(dtype)
    extra = torch.tensor([limits.max, limits.min, limits.tiny], dtype=dtype)
    x = torch.cat([numbers.to(dtype), extra])
    a, b = (g.contiguous() for g in torch.meshgrid(x, x, indexing="ij"))
    got = assert_matches_cpu(torch.nextafter, a, b, rtol=0, atol=0, widen=False)
    assert torch.equal(torch.signbit(got).cpu(), torch.signbit(torch.nextafter(a, b)))


@dtypes(FLOATS)
def test_frexp(dtype: torch.dtype) -> None:
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 3e4, -0.3, 1e-3, INF, -INF, NAN], dtype=dtype)
    limits = torch.finfo(dtype)
    x = torch.cat(
        [numbers, torch.tensor([limits.max, limits.tiny, -limits.tiny], dtype=dtype), torch.randn(50).to(dtype)]
    )
    assert_matches_cpu(torch.frexp, x, rtol=0, atol=0)
    assert_matches_cpu(lambda t: torch.frexp(t.reshape(-1, 4)[:, ::2].t()), x[:48], rtol=0, atol=0)
    out = (torch.empty(0, dtype=dtype, device="dml"), torch.empty(0, dtype=torch.int32, device="dml"))
    torch.frexp(x.to("dml"), out=out)
    assert_same(out, tuple(torch.frexp(x)))
    with pytest.raises(RuntimeError, match="only supports floating-point"):
        torch.frexp(torch.ones(2, dtype=torch.int32, device="dml"))


def test_angle() -> None:
    assert_matches_cpu(torch.angle, torch.tensor([1.0, -1.0, 0.0, -0.0, NAN, INF, -INF]))
    assert_matches_cpu(torch.angle, torch.tensor([1, -1, 0]))
    assert_matches_cpu(torch.angle, torch.randn(5, requires_grad=True))


@pytest.mark.parametrize("name", ["laguerre_polynomial_l", "legendre_polynomial_p"])
def test_degrees_of_many_steps(name: str) -> None:
    """Recurrences with more iterations than Mesa 22's software adapter allows in a loop."""
    x = torch.tensor([0.3, 0.51, 0.97], dtype=torch.float64)
    n = torch.tensor([70_000.0, 300_001.0, 1_000_000.0], dtype=torch.float64)
    function = getattr(torch.special, name)
    found = function(x.to("dml"), n.to("dml")).cpu()
    torch.testing.assert_close(found, function(x, n), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["laguerre_polynomial_l", "legendre_polynomial_p"])
def test_degrees_that_take_too_many_steps(name: str) -> None:
    """For a degree of 2^62 no recurrence would end: the result is NaN, and what needs no recurrence
    is right.
    """
    function = getattr(torch.special, name)
    for dtype in (torch.float32, torch.float64):
        for degree in (2.0**62, 2.0**30, 2.0**20 + 1):
            x = torch.tensor([0.5, 0.25, 0.0 if "laguerre" in name else 1.0, math.nan], dtype=dtype)
            found = function(x.to("dml"), torch.tensor(degree, dtype=dtype).to("dml")).cpu()
            assert found.isnan().tolist() == [True, True, False, True] and found[2] == 1


@dtypes(torch.float32, torch.float64)
def test_k1_near_zero(dtype):
    """1 / x, down to where that is infinite."""
    tiny = torch.finfo(dtype).tiny
    x = torch.tensor([tiny / 4, tiny / 2, tiny, 1e-20, 2**-31, 2**-30, 2**-29, 1e-3], dtype=dtype)
    for function in (S.modified_bessel_k1, S.scaled_modified_bessel_k1):
        assert_same(function(x.to("dml")), function(x.double()).to(dtype), rtol=4 * torch.finfo(dtype).eps, atol=0)
