"""Writes crates/kernel/tests/data/special.csv: exact values of the special functions, with which
tests compare.

A line has a function's name, its one or two arguments, the value rounded to f64, and the rounding
error. Every second point is an f32, so that both types are tested. Needs mpmath, which comes with
torch.

    python scripts/special_values.py > crates/kernel/tests/data/special.csv
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import mpmath as m
import numpy as np

m.mp.dps = 50
Range = tuple[float, float]


def points(ranges: list[Range], count: int) -> Iterator[float]:
    """Yield points of every range: half of them uniform, and half uniform in the logarithm if the
    range has one sign.
    """
    for low, high in ranges:
        for i in range(count):
            u = random.random()
            x = low + (high - low) * u if i % 4 < 2 or low * high <= 0 else low * (high / low) ** u
            yield float(np.float32(x)) if i % 2 else x


def write(name: str, arguments: tuple[float, ...], value: m.mpf) -> None:
    value = m.mpf(value)
    lead = float(value)
    if abs(lead) < 1e-305 or abs(lead) > 1e305:
        return
    cells = [repr(x) for x in arguments] + [""] * (2 - len(arguments))
    print(",".join([name, *cells, repr(lead), repr(float(value - m.mpf(lead)))]))


def quantile(p: m.mpf) -> m.mpf:
    """Return the x with erfc(-x / sqrt(2)) / 2 = p."""
    target = min(p, 1 - p)
    x = m.sqrt(-2 * m.log(2 * target)) if target < 0.4 else m.mpf("0.1")
    for _ in range(200):
        tail = m.erfc(x / m.sqrt(2)) / 2
        density = m.exp(-x * x / 2) / m.sqrt(2 * m.pi)
        # A Newton step for the logarithm, which is nearly a parabola.
        step = (m.log(tail) - m.log(target)) * tail / density
        x += step
        if abs(step) < m.mpf(10) ** -45:
            break
    return -x if p < 0.5 else x


def erfcx(x: m.mpf) -> m.mpf:
    if x < 200:
        return m.exp(x * x) * m.erfc(x)
    return sum((-1) ** k * m.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(10)) / x / m.sqrt(m.pi)


def log_gamma(x: m.mpf) -> m.mpf:
    """log |gamma(x)|"""
    return m.log(abs(m.gamma(x))) if x < 0 else m.loggamma(x).real


UNARY: dict[str, tuple[Callable[[m.mpf], m.mpf], list[Range]]] = {
    "lgamma": (lambda x: m.loggamma(x).real, [(1e-30, 1e-3), (0.01, 4), (0.9, 1.1), (1.9, 2.1), (4, 20), (20, 1e10)]),
    "digamma": (m.digamma, [(1e-10, 0.01), (0.01, 3), (1.4, 1.5), (3, 20), (20, 1e10)]),
    "erfinv": (m.erfinv, [(1e-20, 1e-3), (-0.9, 0.9), (0.9, 0.9999999)]),
    "erfcx": (erfcx, [(-9, 0), (-1, 1), (0, 20), (20, 1e6)]),
    "ndtri": (quantile, [(1e-30, 1e-3), (1e-3, 0.5), (0.5, 0.9999)]),
    "i0": (lambda x: m.besseli(0, x), [(0.01, 8), (8, 88), (88, 700)]),
    "i0e": (lambda x: m.besseli(0, x) * m.exp(-abs(x)), [(0.01, 8), (8, 1e4)]),
    "i1": (lambda x: m.besseli(1, x), [(1e-10, 8), (8, 88), (88, 700)]),
    "i1e": (lambda x: m.besseli(1, x) * m.exp(-abs(x)), [(1e-10, 8), (8, 1e4)]),
    "j0": (lambda x: m.besselj(0, x), [(0.01, 2), (2, 8), (8, 100), (100, 1e4)]),
    "j1": (lambda x: m.besselj(1, x), [(0.01, 2), (2, 8), (8, 100), (100, 1e4)]),
    "y0": (lambda x: m.bessely(0, x), [(1e-10, 2), (2, 8), (8, 100), (100, 1e4)]),
    "y1": (lambda x: m.bessely(1, x), [(1e-10, 2), (2, 8), (8, 100), (100, 1e4)]),
    "k0": (lambda x: m.besselk(0, x), [(1e-10, 1), (1, 2), (2, 80)]),
    "k0e": (lambda x: m.besselk(0, x) * m.exp(x), [(1e-10, 1), (1, 2), (2, 1e4)]),
    "k1": (lambda x: m.besselk(1, x), [(1e-10, 1), (1, 2), (2, 80)]),
    "k1e": (lambda x: m.besselk(1, x) * m.exp(x), [(1e-10, 1), (1, 2), (2, 1e4)]),
    "airy_ai": (m.airyai, [(-100, -2), (-10, -2), (-2, 2), (2, 20)]),
}


FAR: dict[str, list[Range]] = {
    "j0": [(1e4, 1e12)],
    "j1": [(1e4, 1e12)],
    "y0": [(1e4, 1e12)],
    "y1": [(1e4, 1e12)],
    "i0e": [(1e4, 1e30)],
    "i1e": [(1e4, 1e30)],
    "k0e": [(1e4, 1e30)],
    "k1e": [(1e4, 1e30)],
    "airy_ai": [(-1e5, -100)],
}
ZEROS: dict[str, Callable[[int], m.mpf]] = {
    "j0": lambda k: m.besseljzero(0, k),
    "j1": lambda k: m.besseljzero(1, k),
    "y0": lambda k: m.besselyzero(0, k),
    "y1": lambda k: m.besselyzero(1, k),
    "airy_ai": m.airyaizero,
}


def both(ranges: list[tuple[Range, Range]], count: int) -> Iterator[tuple[float, float]]:
    for first, second in ranges:
        yield from zip(points([first], count), points([second], count), strict=False)


def near(low: float, high: float, reach: float, count: int) -> Iterator[tuple[float, float]]:
    """Yield pairs of arguments whose relative difference is at most `reach`."""
    for a in points([(low, high)], count):
        x = a * (1 + reach * (2 * random.random() - 1))
        yield a, float(np.float32(x)) if float(np.float32(a)) == a else x


def main() -> None:
    random.seed(1)
    for name, (f, ranges) in UNARY.items():
        for x in points(ranges, 24):
            write(name, (x,), f(m.mpf(x)))
    for s, q in both([((1.01, 10), (0.01, 20)), ((1.01, 30), (1, 1e4))], 24):
        # mpmath's error is absolute.
        with m.workdps(200):
            value = m.zeta(m.mpf(s), m.mpf(q))
        write("zeta", (s, q), value)
    plain = [((0.01, 1), (1e-5, 1)), ((0.1, 10), (0.01, 20)), ((5, 60), (5, 60))]
    pairs = [*both(plain, 24), *near(20, 100, 0.4, 24), *near(100, 3000, 0.1, 24)]
    for a, x in pairs:
        lower = m.gammainc(a, 0, x, regularized=True)
        upper = m.gammainc(a, x, regularized=True)
        if lower > 1e-30:
            write("igamma", (a, x), lower)
        if upper > 1e-30:
            write("igammac", (a, x), upper)
    for name, far in FAR.items():
        for x in points(far, 24):
            write(name, (x,), UNARY[name][0](m.mpf(x)))
    for name, zeros in ZEROS.items():
        for k in range(1, 9):
            x = float(zeros(k))
            write(name, (x,), UNARY[name][0](m.mpf(x)))
    for x in points([(1e-3, 2), (2, 30), (30, 1e6)], 24):  # Trigamma, the derivative of digamma.
        write("zeta", (2.0, x), m.psi(1, m.mpf(x)))
    for x in points([(-3, -0.01), (-3, -2), (-5, -3), (-10, -5), (-20, -10)], 48):
        write("lgamma", (x,), log_gamma(m.mpf(x)))
    for start in (-2.457, -2.7477, -3.1436, -3.9553, -4.0394, -4.9916, -5.0082, -5.9986, -6.0014):
        x = float(np.float32(m.findroot(log_gamma, start)))
        write("lgamma", (x,), log_gamma(m.mpf(x)))
    for x in points([(-3, -0.01), (-10, -3), (-20, -10)], 48):
        write("digamma", (x,), m.digamma(m.mpf(x)))
    for n in range(10):
        x = float(np.float32(m.findroot(m.digamma, -n - 0.5 - 0.02 * n)))
        write("digamma", (x,), m.digamma(m.mpf(x)))


if __name__ == "__main__":
    main()
