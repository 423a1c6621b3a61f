"""What is measured: functions, reductions and products, with their inputs and exact references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mpmath as m
import numpy
import torch
import torch.nn.functional as F

from .exact import wide
from .inputs import ANY, POSITIVE, PROBABILITY, UNIT, Domain

special = torch.special


@dataclass(frozen=True)
class Function:
    """A pointwise function."""

    name: str
    run: Callable[..., torch.Tensor]
    # The function for mpmath's numbers. None: the CPU's float64 result is exact, as for rounding
    # and selecting.
    exact: Callable[..., Any] | None
    domains: tuple[Domain, ...]


@dataclass(frozen=True)
class Aggregate:
    """A reduction or a product: each element of the result depends on many."""

    name: str
    run: Callable[..., torch.Tensor]
    exact: Callable[..., Any]  # for longdoubles
    shapes: tuple[tuple[int, ...], ...]  # the shapes of the arguments
    kinds: tuple[str, ...] = ("normal", "wide")
    by_norm: bool = False  # errors are relative to the whole result's norm, because terms cancel


def _unary(domain: Domain, functions: dict[str, tuple[Callable[..., torch.Tensor], Any]]) -> list[Function]:
    return [Function(name, run, exact, (domain,)) for name, (run, exact) in functions.items()]


def _binary(functions: dict[str, tuple[Callable[..., torch.Tensor], Any, Domain, Domain]]) -> list[Function]:
    return [Function(name, run, exact, (one, other)) for name, (run, exact, one, other) in functions.items()]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def _softplus(x: Any) -> Any:
    return m.log1p(m.exp(x))


def _norm_cdf(x: Any) -> Any:
    return m.erfc(-x / m.sqrt(2)) / 2


def _quantile(p: Any) -> Any:
    return -m.sqrt(2) * m.erfinv(1 - 2 * p)


def _even(x: Any) -> Any:
    return x * x


def _polynomial(second: Callable[[Any], Any], step: Callable[[int, Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A polynomial by its recurrence: of degree 0 it is 1, of degree 1 `second(x)`, and of degree
    n + 1 `step(n, x, p, before)`.
    """

    def value(x: Any, degree: Any) -> Any:
        before, p = m.mpf(1), second(x)
        if degree == 0:
            return before
        for n in range(1, int(degree)):
            before, p = p, step(n, x, p, before)
        return p

    return value


def _chebyshev(factor: int, offset: int) -> Callable[[Any, Any], Any]:
    return _polynomial(lambda x: factor * x + offset, lambda n, x, p, q: 2 * x * p - q)


def _shifted(polynomial: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, n: polynomial(2 * x - 1, n)


CHEBYSHEV = {"t": _chebyshev(1, 0), "u": _chebyshev(2, 0), "v": _chebyshev(2, -1), "w": _chebyshev(2, 1)}
SMALL = Domain(usual=(-10, 10), low=-80, high=80, exponents=(-40, 6))
OSCILLATES = Domain(usual=(-20, 20), low=-1000, high=1000, exponents=(-40, 9))
DAMPED = Domain(usual=(0, 20), low=0, high=1000, exponents=(-40, 9))
DEGREE = Domain(usual=(0, 20), whole=True)
ABOVE_ONE = Domain(usual=(1, 10), low=1)

ELEMENTARY = [
    *_unary(
        ANY,
        {
            "abs": (torch.abs, None),
            "asinh": (torch.asinh, m.asinh),
            "atan": (torch.atan, m.atan),
            "ceil": (torch.ceil, None),
            "cos": (torch.cos, m.cos),
            "cosh": (torch.cosh, m.cosh),
            "deg2rad": (torch.deg2rad, lambda x: x * m.pi / 180),
            "erf": (torch.erf, m.erf),
            "erfc": (torch.erfc, m.erfc),
            "exp": (torch.exp, m.exp),
            "exp2": (torch.exp2, lambda x: m.mpf(2) ** x),
            "expm1": (torch.expm1, m.expm1),
            "floor": (torch.floor, None),
            "frac": (torch.frac, None),
            "neg": (torch.neg, None),
            "rad2deg": (torch.rad2deg, lambda x: x * 180 / m.pi),
            "reciprocal": (torch.reciprocal, lambda x: 1 / x),
            "round": (torch.round, None),
            "sigmoid": (torch.sigmoid, _sigmoid),
            "sign": (torch.sign, None),
            "sin": (torch.sin, m.sin),
            "sinc": (torch.sinc, lambda x: m.sincpi(x)),
            "sinh": (torch.sinh, m.sinh),
            "square": (torch.square, _even),
            "tan": (torch.tan, m.tan),
            "tanh": (torch.tanh, m.tanh),
            "trunc": (torch.trunc, None),
        },
    ),
    *_unary(
        POSITIVE,
        {
            "log": (torch.log, m.log),
            "log10": (torch.log10, m.log10),
            "log2": (torch.log2, lambda x: m.log(x) / m.log(2)),
            "rsqrt": (torch.rsqrt, lambda x: 1 / m.sqrt(x)),
            "sqrt": (torch.sqrt, m.sqrt),
            "special.entr": (special.entr, lambda x: -x * m.log(x)),
        },
    ),
    *_unary(
        UNIT,
        {
            "acos": (torch.acos, m.acos),
            "asin": (torch.asin, m.asin),
            "atanh": (torch.atanh, m.atanh),
            "erfinv": (torch.erfinv, m.erfinv),
        },
    ),
    *_unary(ABOVE_ONE, {"acosh": (torch.acosh, m.acosh)}),
    *_unary(Domain(usual=(-1, 10), low=-1), {"log1p": (torch.log1p, m.log1p)}),
    *_unary(
        PROBABILITY,
        {"logit": (torch.logit, lambda x: m.log(x) - m.log1p(-x)), "special.ndtri": (special.ndtri, _quantile)},
    ),
    *_binary(
        {
            "add": (torch.add, lambda a, b: a + b, ANY, ANY),
            "atan2": (torch.atan2, m.atan2, ANY, ANY),
            "copysign": (torch.copysign, None, ANY, ANY),
            "div": (torch.div, lambda a, b: a / b, ANY, ANY),
            "div floor": (
                lambda a, b: torch.div(a, b, rounding_mode="floor"),
                lambda a, b: m.floor(a / b),
                SMALL,
                SMALL,
            ),
            "div trunc": (
                lambda a, b: torch.div(a, b, rounding_mode="trunc"),
                lambda a, b: m.sign(a / b) * m.floor(abs(a / b)),
                SMALL,
                SMALL,
            ),
            "fmod": (torch.fmod, lambda a, b: a - b * m.sign(a / b) * m.floor(abs(a / b)), SMALL, SMALL),
            "hypot": (torch.hypot, m.hypot, ANY, ANY),
            "logaddexp": (torch.logaddexp, lambda a, b: m.log(m.exp(a) + m.exp(b)), SMALL, SMALL),
            "logaddexp2": (torch.logaddexp2, lambda a, b: m.log(2**a + 2**b) / m.log(2), SMALL, SMALL),
            "maximum": (torch.maximum, None, ANY, ANY),
            "minimum": (torch.minimum, None, ANY, ANY),
            "mul": (torch.mul, lambda a, b: a * b, ANY, ANY),
            "nextafter": (torch.nextafter, None, ANY, ANY),
            "pow": (torch.pow, lambda a, b: a**b, POSITIVE, SMALL),
            "remainder": (torch.remainder, lambda a, b: a - b * m.floor(a / b), SMALL, SMALL),
            "sub": (torch.sub, lambda a, b: a - b, ANY, ANY),
            "xlogy": (torch.xlogy, lambda a, b: a * m.log(b), ANY, POSITIVE),
            "special.xlog1py": (special.xlog1py, lambda a, b: a * m.log1p(b), ANY, POSITIVE),
        }
    ),
]

ACTIVATIONS = _unary(
    SMALL,
    {
        "celu": (lambda x: F.celu(x, 1.5), lambda x: x if x > 0 else m.mpf(1.5) * m.expm1(x / m.mpf(1.5))),
        "elu": (F.elu, lambda x: x if x > 0 else m.expm1(x)),
        "gelu": (F.gelu, lambda x: x * _norm_cdf(x)),
        "gelu tanh": (
            lambda x: F.gelu(x, approximate="tanh"),
            lambda x: x / 2 * (1 + m.tanh(m.sqrt(2 / m.pi) * (x + m.mpf("0.044715") * x**3))),
        ),
        "hardsigmoid": (F.hardsigmoid, lambda x: min(max(x + 3, 0), 6) / 6),
        "hardswish": (F.hardswish, lambda x: x * min(max(x + 3, 0), 6) / 6),
        "leaky_relu": (lambda x: F.leaky_relu(x, 0.25), None),
        "logsigmoid": (F.logsigmoid, lambda x: -_softplus(-x)),
        "mish": (F.mish, lambda x: x * m.tanh(_softplus(x))),
        "relu": (F.relu, None),
        "selu": (
            F.selu,
            lambda x: (
                m.mpf("1.0507009873554804934193349852946")
                * (x if x > 0 else m.mpf("1.6732632423543772848170429916717") * m.expm1(x))
            ),
        ),
        "silu": (F.silu, lambda x: x * _sigmoid(x)),
        # Above the threshold PyTorch defines it as the identity.
        "softplus": (F.softplus, lambda x: x if x > 20 else _softplus(x)),
        "softshrink": (lambda x: F.softshrink(x, 0.5), lambda x: m.sign(x) * max(abs(x) - 0.5, 0)),
        "softsign": (F.softsign, lambda x: x / (1 + abs(x))),
        "tanhshrink": (F.tanhshrink, lambda x: x - m.tanh(x)),
    },
)

SPECIAL = [
    *_unary(
        SMALL,
        {
            "i0": (torch.i0, lambda x: m.besseli(0, x)),
            "special.i0e": (special.i0e, lambda x: m.besseli(0, x) * m.exp(-abs(x))),
            "special.i1": (special.i1, lambda x: m.besseli(1, x)),
            "special.i1e": (special.i1e, lambda x: m.besseli(1, x) * m.exp(-abs(x))),
            "special.modified_bessel_i0": (special.modified_bessel_i0, lambda x: m.besseli(0, x)),
            "special.modified_bessel_i1": (special.modified_bessel_i1, lambda x: m.besseli(1, x)),
            "lgamma": (torch.lgamma, lambda x: m.re(m.loggamma(x))),
            "digamma": (torch.digamma, m.digamma),
            "special.ndtr": (special.ndtr, _norm_cdf),
            "special.log_ndtr": (special.log_ndtr, lambda x: m.log(_norm_cdf(x))),
            "special.erfcx": (special.erfcx, lambda x: m.exp(x * x) * m.erfc(x)),
        },
    ),
    *_unary(
        OSCILLATES,
        {
            "special.bessel_j0": (special.bessel_j0, lambda x: m.besselj(0, x)),
            "special.bessel_j1": (special.bessel_j1, lambda x: m.besselj(1, x)),
            "special.spherical_bessel_j0": (special.spherical_bessel_j0, m.sinc),
        },
    ),
    *_unary(
        Domain(usual=(-10, 10), low=-100, high=100, exponents=(-40, 6)),
        {"special.airy_ai": (special.airy_ai, m.airyai)},
    ),
    *_unary(
        DAMPED,
        {
            "special.bessel_y0": (special.bessel_y0, lambda x: m.bessely(0, x)),
            "special.bessel_y1": (special.bessel_y1, lambda x: m.bessely(1, x)),
            "special.modified_bessel_k0": (special.modified_bessel_k0, lambda x: m.besselk(0, x)),
            "special.modified_bessel_k1": (special.modified_bessel_k1, lambda x: m.besselk(1, x)),
            "special.scaled_modified_bessel_k0": (
                special.scaled_modified_bessel_k0,
                lambda x: m.besselk(0, x) * m.exp(x),
            ),
            "special.scaled_modified_bessel_k1": (
                special.scaled_modified_bessel_k1,
                lambda x: m.besselk(1, x) * m.exp(x),
            ),
        },
    ),
    *_unary(
        Domain(usual=(0, 20), low=0, high=200, exponents=(-10, 7)),
        {
            f"polygamma {n}": (lambda x, n=n: torch.polygamma(n, x), lambda x, n=n: m.polygamma(n, x))
            for n in (1, 2, 3, 4)
        },
    ),
    *_unary(
        Domain(usual=(3, 20), low=3, high=1000, exponents=(0, 9)),
        {
            "mvlgamma 5": (
                lambda x: torch.mvlgamma(x, 5),
                lambda x: 5 * m.log(m.pi) + sum(m.loggamma(x - m.mpf(i) / 2) for i in range(5)),
            )
        },
    ),
    *_binary(
        {
            "special.zeta": (
                special.zeta,
                lambda s, q: m.zeta(s, q),
                Domain(usual=(1.01, 20), low=1.01, high=20, exponents=(0, 4)),
                Domain(usual=(0.1, 20), low=0.1, high=100, exponents=(-3, 6)),
            ),
            **{
                name: (
                    run,
                    exact,
                    Domain(usual=(0.05, 20), low=0.05, high=500, exponents=(-4, 9)),
                    Domain(usual=(0.05, 20), low=0.05, high=500, exponents=(-4, 9)),
                )
                for name, run, exact in (
                    ("igamma", torch.igamma, lambda a, x: m.gammainc(a, 0, x, regularized=True)),
                    ("igammac", torch.igammac, lambda a, x: m.gammainc(a, x, regularized=True)),
                )
            },
            **{
                f"special.chebyshev_polynomial_{kind}": (
                    getattr(special, f"chebyshev_polynomial_{kind}"),
                    CHEBYSHEV[kind],
                    UNIT,
                    DEGREE,
                )
                for kind in CHEBYSHEV
            },
            **{
                f"special.shifted_chebyshev_polynomial_{kind}": (
                    getattr(special, f"shifted_chebyshev_polynomial_{kind}"),
                    _shifted(CHEBYSHEV[kind]),
                    PROBABILITY,
                    DEGREE,
                )
                for kind in CHEBYSHEV
            },
            "special.hermite_polynomial_h": (
                special.hermite_polynomial_h,
                _polynomial(lambda x: 2 * x, lambda n, x, p, q: 2 * (x * p - n * q)),
                SMALL,
                DEGREE,
            ),
            "special.hermite_polynomial_he": (
                special.hermite_polynomial_he,
                _polynomial(lambda x: x, lambda n, x, p, q: x * p - n * q),
                SMALL,
                DEGREE,
            ),
            "special.laguerre_polynomial_l": (
                special.laguerre_polynomial_l,
                _polynomial(lambda x: 1 - x, lambda n, x, p, q: ((2 * n + 1 - x) * p - n * q) / (n + 1)),
                DAMPED,
                DEGREE,
            ),
            "special.legendre_polynomial_p": (
                special.legendre_polynomial_p,
                _polynomial(lambda x: x, lambda n, x, p, q: ((2 * n + 1) * x * p - n * q) / (n + 1)),
                UNIT,
                DEGREE,
            ),
        }
    ),
]

ROWS = ((16, 1000),)
LONG = ((4, 20_000),)


def _log_sum(x: Any) -> Any:
    largest = x.max(-1, keepdims=True)
    return numpy.log(numpy.exp(x - largest).sum(-1, keepdims=True)) + largest


def _softmax(x: Any) -> Any:
    return numpy.exp(x - _log_sum(x))


def _norm(order: float) -> Callable[[Any], Any]:
    return lambda x: (abs(x) ** numpy.longdouble(order)).sum(-1) ** (1 / numpy.longdouble(order))


def _vector_norm(order: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.linalg.vector_norm(x, order, -1)


NEAR_ONE = ("near one",)
REDUCTIONS = [
    Aggregate("sum", lambda x: x.sum(-1), lambda x: x.sum(-1), LONG, by_norm=True),
    Aggregate("nansum", lambda x: x.nansum(-1), lambda x: x.sum(-1), LONG, by_norm=True),
    Aggregate("mean", lambda x: x.mean(-1), lambda x: x.mean(-1), LONG, by_norm=True),
    Aggregate("prod", lambda x: x.prod(-1), lambda x: x.prod(-1), ROWS, NEAR_ONE),
    Aggregate("var", lambda x: x.var(-1), lambda x: x.var(-1, ddof=1), LONG),
    Aggregate("std", lambda x: x.std(-1), lambda x: x.std(-1, ddof=1), LONG),
    *(Aggregate(f"vector_norm {order}", _vector_norm(order), _norm(order), LONG) for order in (1, 2, 3, 0.5)),
    Aggregate("vector_norm inf", _vector_norm(float("inf")), lambda x: abs(x).max(-1), LONG),
    Aggregate("logsumexp", lambda x: x.logsumexp(-1), lambda x: _log_sum(x)[..., 0], ROWS),
    Aggregate("cumsum", lambda x: x.cumsum(-1), lambda x: x.cumsum(-1), ROWS, by_norm=True),
    Aggregate("cumprod", lambda x: x.cumprod(-1), lambda x: x.cumprod(-1), ROWS, NEAR_ONE),
    Aggregate(
        "logcumsumexp",
        lambda x: x.logcumsumexp(-1),
        lambda x: numpy.logaddexp.accumulate(x, -1),
        ROWS,
        by_norm=True,
    ),
    Aggregate("softmax", lambda x: x.softmax(-1), _softmax, ROWS),
    Aggregate("log_softmax", lambda x: x.log_softmax(-1), lambda x: x - _log_sum(x), ROWS, by_norm=True),
    Aggregate(
        "layer_norm",
        lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0),
        lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True),
        ROWS,
        by_norm=True,
    ),
    Aggregate(
        "rms_norm",
        lambda x: F.rms_norm(x, x.shape[-1:], eps=0.0),
        lambda x: x / numpy.sqrt((x * x).mean(-1, keepdims=True)),
        ROWS,
    ),
]


def _dots(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The inner product of each pair of rows."""
    return torch.stack([torch.dot(one, other) for one, other in zip(a, b, strict=True)])


def _windows(x: Any, size: tuple[int, ...]) -> Any:
    """All windows of a size over the last dimensions."""
    return numpy.lib.stride_tricks.sliding_window_view(x, size, tuple(range(-len(size), 0)))


def _attention(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ k.swapaxes(-1, -2) / numpy.sqrt(numpy.longdouble(q.shape[-1]))) @ v


PRODUCTS = [
    Aggregate("dot", _dots, lambda a, b: (a * b).sum(-1), ((16, 4000), (16, 4000)), by_norm=True),
    Aggregate("mv", torch.mv, lambda a, b: a @ b, ((60, 700), (700,)), by_norm=True),
    Aggregate("mm", torch.mm, lambda a, b: a @ b, ((48, 700), (700, 40)), by_norm=True),
    Aggregate("bmm", torch.bmm, lambda a, b: a @ b, ((3, 33, 300), (3, 300, 20)), by_norm=True),
    Aggregate("linear", F.linear, lambda x, w, b: x @ w.T + b, ((33, 500), (40, 500), (40,)), by_norm=True),
    Aggregate(
        "conv1d",
        F.conv1d,
        lambda x, w: numpy.einsum("bcnk,ock->bon", _windows(x, (5,)), w),
        ((2, 24, 80), (16, 24, 5)),
        by_norm=True,
    ),
    Aggregate(
        "conv2d",
        F.conv2d,
        lambda x, w: numpy.einsum("bcnmkl,ockl->bonm", _windows(x, (3, 3)), w),
        ((2, 24, 14, 14), (16, 24, 3, 3)),
        by_norm=True,
    ),
    Aggregate(
        "scaled_dot_product_attention",
        F.scaled_dot_product_attention,
        _attention,
        ((1, 2, 40, 32),) * 3,
        kinds=("normal",),
        by_norm=True,
    ),
]

FUNCTIONS: list[Function] = [*ELEMENTARY, *ACTIVATIONS, *SPECIAL]
AGGREGATES: list[Aggregate] = [*REDUCTIONS, *PRODUCTS]


def widened(aggregate: Aggregate, arguments: Iterable[torch.Tensor]) -> Any:
    """The exact result of an aggregate of some tensors, as longdoubles."""
    return aggregate.exact(*(wide(argument) for argument in arguments))
