"""Writes the polynomials of the special functions: crates/kernel/src/math/special/tables.rs.

Every polynomial is a Chebyshev series of the exact function, truncated where the remainder is below
2^-27 (f32) or 2^-57 (f64) of the function's smallest value, and converted to powers of
`(x - centre) * scale`, which is in -1 to 1. All coefficients are computed from the definitions
below; none comes from another library. Needs mpmath, which comes with torch.

    python scripts/special_polynomials.py > crates/kernel/src/math/special/tables.rs && cargo fmt
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as m
import numpy as np

m.mp.dps = 60
Function = Callable[[m.mpf], m.mpf]

SINGLE_BITS, DOUBLE_BITS = 27, 57
NODES = 72


def chebyshev(f: Function, low: m.mpf, high: m.mpf) -> list[m.mpf]:
    angles = [m.pi * (2 * k + 1) / (2 * NODES) for k in range(NODES)]
    values = [f((high - low) / 2 * m.cos(a) + (high + low) / 2) for a in angles]
    series = [2 * sum(v * m.cos(j * a) for a, v in zip(angles, values, strict=False)) / NODES for j in range(NODES)]
    series[0] /= 2
    return series


def powers(series: list[m.mpf]) -> list[m.mpf]:
    before, now = [m.mpf(1)], [m.mpf(0), m.mpf(1)]
    total = [m.mpf(0)] * len(series)
    for j, c in enumerate(series):
        term = before if j == 0 else now
        if j > 1:
            after = [m.mpf(0)] + [2 * t for t in now]
            for i, t in enumerate(before):
                after[i] -= t
            before, now = now, after
            term = now
        for i, t in enumerate(term):
            total[i] += c * t
    return total


def cut(series: list[m.mpf], tolerance: m.mpf) -> list[m.mpf]:
    n, rest = len(series), m.mpf(0)
    while n > 1 and rest + abs(series[n - 1]) < tolerance:
        rest += abs(series[n - 1])
        n -= 1
    assert n < len(series) / 2, "the series does not converge"
    return powers(series[:n])


def from_end(powers: list[m.mpf]) -> list[m.mpf]:
    """Convert a polynomial of u in -1 to 1 to powers of v = (u + 1) / 2, which is in 0 to 1."""
    result = [m.mpf(0)] * len(powers)
    for j, c in enumerate(powers):
        for i in range(j + 1):
            result[i] += c * m.binomial(j, i) * m.mpf(2) ** i * (-1) ** (j - i)
    return result


def table(name: str, text: str, f: Function, low: object, high: object, at_zero: bool = False) -> None:
    """Print a function's polynomials; `at_zero`: in powers of x itself, for series whose terms all
    have the same sign on the interval.
    """
    low, high = m.mpf(low), m.mpf(high)
    centre, scale = m.mpf(float((low + high) / 2)), m.mpf(float(2 / (high - low)))
    low, high = centre - 1 / scale, centre + 1 / scale
    series = chebyshev(f, low, high)
    values = [abs(f(low + (high - low) * k / 32)) for k in range(33)]
    least = max(min(values), max(values) / 64)
    print(f"/// {text}")
    print(f"pub const {name}: Polynomial = Polynomial {{")
    shift, factor = (m.mpf(0), scale / 2) if at_zero else (centre, scale)
    print(f"    centre: {float(shift)!r},\n    scale: {float(factor)!r},")
    for field, bits in (("single", SINGLE_BITS), ("double", DOUBLE_BITS)):
        c = cut(series, least * m.mpf(2) ** -bits)
        c = from_end(c) if at_zero else c
        if field == "single":
            lead = float(np.float32(float(c[0])))
            numbers = [lead, float(c[0] - lead)] + [float(x) for x in c[1:]]
            texts = [f"{x:.9e}" for x in numbers]
            texts[0] = repr(lead)
        else:
            numbers = [float(c[0]), float(c[0] - m.mpf(float(c[0])))] + [float(x) for x in c[1:]]
            texts = [repr(x) for x in numbers]
        print(f"    {field}: &[{', '.join(texts)}],")
    print("};")


def constant(name: str, text: str, value: m.mpf) -> None:
    """Print a number with more than its type's precision: leading part and remainder for f32, and
    for f64.
    """
    single = float(np.float32(float(value)))
    double = float(value)
    print(f"/// {text}")
    print(f"pub const {name}: Constant = Constant {{")
    print(f"    single: [{single!r}, {float(value - m.mpf(single))!r}],")
    print(f"    double: [{double!r}, {float(value - m.mpf(double))!r}],")
    print("};")


# ---- the gamma function


def lgamma_ratio(z: m.mpf) -> m.mpf:
    """lgamma(1 + z) / (z (z - 1))"""
    if abs(z) < 1e-25:
        return m.euler
    if abs(z - 1) < 1e-25:
        return 1 - m.euler
    return m.loggamma(1 + z) / (z * (z - 1))


def stirling_rest(v: m.mpf) -> m.mpf:
    """(lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) x, at v = 1 / x^2"""
    if v < 1e-20:
        return m.mpf(1) / 12
    x = 1 / m.sqrt(v)
    return (m.loggamma(x) - ((x - 0.5) * m.log(x) - x + m.log(2 * m.pi) / 2)) * x


DIGAMMA_ROOT = m.findroot(m.digamma, m.mpf("1.4616"))


def digamma_rest(v: m.mpf) -> m.mpf:
    """(log(x) - 1 / (2 x) - digamma(x)) x^2, at v = 1 / x^2"""
    if v < 1e-20:
        return m.mpf(1) / 12
    x = 1 / m.sqrt(v)
    return (m.log(x) - 1 / (2 * x) - m.digamma(x)) / v


# ---- the error function's relatives


def erfcx(x: m.mpf) -> m.mpf:
    if x < 100:
        return m.exp(x * x) * m.erfc(x)
    return sum((-1) ** k * m.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(14)) / x / m.sqrt(m.pi)


ERFCX_K = m.mpf("3.75")


def erfcx_mapped(u: m.mpf) -> m.mpf:
    if u > 1 - m.mpf(10) ** -30:
        return 2 / m.sqrt(m.pi)
    x = ERFCX_K * (1 + u) / (1 - u)
    return (1 + 2 * x) * erfcx(x)


def inverse_erf(w: m.mpf) -> m.mpf:
    """The y with (1 - erf(y)) (1 + erf(y)) = e^-w."""
    if w == 0:
        return m.mpf(0)
    target = -w
    y = m.sqrt(w) * m.sqrt(m.pi) / 2 if w < 1 else m.sqrt(w - m.log(m.pi * w) / 2 + m.log(2))
    for _ in range(60):
        log = m.log(m.erfc(y)) + m.log(2 - m.erfc(y))
        slope = -2 / m.sqrt(m.pi) * m.exp(-y * y) * (1 / m.erfc(y) - 1 / (2 - m.erfc(y)))
        step = (log - target) / slope
        y -= step
        if abs(step) < abs(y) * m.mpf(10) ** -52:
            break
    return y


def inverse_erf_near(w: m.mpf) -> m.mpf:
    """erfinv(x) / x at w = -log(1 - x^2)"""
    if abs(w) < m.mpf(10) ** -24:
        return m.sqrt(m.pi) / 2
    if w < 0:
        # The analytic continuation: x is imaginary.
        x = m.sqrt(-m.expm1(-w)) if w > 0 else m.sqrt(m.mpc(-m.expm1(-w)))
        y = m.findroot(lambda y: m.erf(y) - x, x * m.sqrt(m.pi) / 2)
        return (y / x).real
    return inverse_erf(w) / m.sqrt(-m.expm1(-w))


def inverse_erf_far(v: m.mpf) -> m.mpf:
    """y / sqrt(w) at v = 1 / sqrt(w)"""
    return inverse_erf(1 / (v * v)) * v


# ---- Bessel functions


def in_square(f: Function, limit: m.mpf) -> Function:
    """f(sqrt(t)), and its limit at t = 0"""
    return lambda t: f(m.sqrt(t)) if t > m.mpf(10) ** -25 else limit


def of_inverse(f: Function, limit: m.mpf) -> Function:
    return lambda v: f(1 / v) if v > m.mpf(10) ** -12 else limit


def hankel(order: int, part: str) -> Function:
    """P, or Q / z, of H(x) = sqrt(2 / (pi x)) e^(i (x - order pi / 2 - pi / 4)) (P + i Q), at z^2,
    where z = 8 / x.
    """

    def value(square: m.mpf) -> m.mpf:
        z = m.sqrt(max(square, m.mpf(10) ** -30))
        x = 8 / z
        mu = 4 * order * order
        if x > 400:
            terms, term = [], m.mpf(1)
            for k in range(60):
                terms.append(term)
                term = term * (mu - (2 * k + 1) ** 2) / ((k + 1) * 8 * x)
            real = sum(t * (-1) ** (i // 2) for i, t in enumerate(terms) if i % 2 == 0)
            imaginary = sum(t * (-1) ** (i // 2) for i, t in enumerate(terms) if i % 2 == 1)
        else:
            phase = m.expj(-(x - order * m.pi / 2 - m.pi / 4))
            h = m.hankel1(order, x) * m.sqrt(m.pi * x / 2) * phase
            real, imaginary = h.real, h.imag
        return real if part == "P" else imaginary / z

    return value


def bessel_tables() -> None:
    for n in (0, 1):

        def i(x, n=n):
            return m.besseli(n, x)

        if n == 0:
            table(
                "I0", "`(I0(x) - 1) / x^2` in `x^2`.", in_square(lambda x: (i(x) - 1) / x**2, m.mpf(1) / 4), 0, 64, True
            )
        else:
            f = in_square(lambda x: (2 * i(x) / x - 1) / x**2, m.mpf(1) / 8)
            table("I1", "`(2 I1(x) / x - 1) / x^2` in `x^2`.", f, 0, 64, True)
        f = of_inverse(lambda x: i(x) * m.exp(-x) * m.sqrt(x), 1 / m.sqrt(2 * m.pi))
        table(f"I{n}_FAR", f"`I{n}(x) e^-x sqrt(x)` in `1 / x`.", f, 0, m.mpf(1) / 8)
    near = in_square(lambda x: m.besselk(0, x) + m.log(x) * m.besseli(0, x), m.log(2) - m.euler)
    table("K0", "`K0(x) + log(x) I0(x)` in `x^2`.", near, 0, 1, True)
    near = in_square(
        lambda x: ((m.besselk(1, x) - m.log(x) * m.besseli(1, x)) * x - 1) / x**2, (m.euler - 0.5 - m.log(2)) / 2
    )
    table("K1", "`((K1(x) - log(x) I1(x)) x - 1) / x^2` in `x^2`.", near, 0, 1, True)
    for n in (0, 1):

        def k(x, n=n):
            return m.besselk(n, x) * m.exp(x) * m.sqrt(x)

        table(f"K{n}_MIDDLE", f"`K{n}(x) e^x sqrt(x)` in `x`.", k, 1, 2)
        table(f"K{n}_FAR", f"`K{n}(x) e^x sqrt(x)` in `1 / x`.", of_inverse(k, m.sqrt(m.pi / 2)), 0, 0.5)
    zeros = {n: [m.besseljzero(n, s) for s in (1, 2)] for n in (0, 1)}
    for n in (0, 1):
        for s in (1, 2):
            constant(f"J{n}_ZERO_{s}", f"Zero {s} of J{n}.", zeros[n][s - 1])
        a, b = (z * z for z in zeros[n])

        def j(x, n=n):
            return m.besselj(n, x) / (x if n else 1)

        f = in_square(lambda x, j=j, a=a, b=b: j(x) / ((x * x - a) * (x * x - b)), m.mpf(0.5 if n else 1) / (a * b))
        for name, ends in (("NEAR", (0, 20)), ("MIDDLE", (20, 64))):
            text = f"`J{n}(x){' / x' if n else ''}`, its first two zeros divided out, in `x^2`."
            table(f"J{n}_{name}", text, f, *ends)
        for part in "PQ":
            what = "`P(x)`" if part == "P" else "`Q(x) x / 8`"
            table(f"{part}{n}", f"{what} of the Hankel function of order {n}, in `(8 / x)^2`.", hankel(n, part), 0, 1)
    y = in_square(lambda x: m.bessely(0, x) - 2 / m.pi * m.log(x) * m.besselj(0, x), 2 / m.pi * (m.euler - m.log(2)))
    for name, ends in (("NEAR", (0, 20)), ("MIDDLE", (20, 64))):
        table(f"Y0_{name}", "`Y0(x) - 2/pi log(x) J0(x)` in `x^2`.", y, *ends)
    y = in_square(
        lambda x: (m.bessely(1, x) - 2 / m.pi * (m.log(x) * m.besselj(1, x) - 1 / x)) / x,
        (m.euler - 0.5 - m.log(2)) / m.pi,
    )
    for name, ends in (("NEAR", (0, 20)), ("MIDDLE", (20, 64))):
        table(f"Y1_{name}", "`(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x` in `x^2`.", y, *ends)


def airy_tables() -> None:
    edge, left_edge = m.mpf(2), m.mpf("4.5")
    zeros = [m.airyaizero(n) for n in (1, 2)]
    for n, zero in enumerate(zeros, 1):
        constant(f"AIRY_ZERO_{n}", f"Zero {n} of Ai.", zero)

    def ratio(x):
        return m.airyai(x) / ((x - zeros[0]) * (x - zeros[1]))

    table("AIRY_LEFT", "`Ai(x)`, its first two zeros divided out.", ratio, -left_edge, -edge)
    table("AIRY", "`Ai(x)` near zero, the left part.", m.airyai, -edge, 0)
    table("AIRY_RIGHT", "`Ai(x)` near zero, the right part.", m.airyai, 0, edge)

    def zeta(x):
        return 2 * x**1.5 / 3

    def to_x(v):
        return (m.mpf(3) / (2 * v)) ** (m.mpf(2) / 3)

    def decay(v):
        return m.airyai(to_x(v)) * m.exp(1 / v) * m.sqrt(m.sqrt(to_x(v)))

    def far(v):
        return decay(v) if v > m.mpf(10) ** -9 else 1 / (2 * m.sqrt(m.pi)) * (1 - 5 * v / 72)

    table("AIRY_FAR", "`Ai(x) e^z x^(1/4)` in `1 / z`, z = 2/3 x^(3/2).", far, 0, 1 / zeta(edge))

    def wave(part: str) -> Function:
        """Ai(-x) = x^(-1/4) (P sin(z + pi/4) - Q cos(z + pi/4)) / sqrt(pi), Q / v where v = 1 /
        z.
        """

        def value(square: m.mpf) -> m.mpf:
            v = m.sqrt(max(square, m.mpf(10) ** -14))
            x, z = to_x(v), 1 / v
            if v < m.mpf(1) / 60:
                u, total = m.mpf(1), [m.mpf(0), m.mpf(0)]
                for k in range(80):
                    total[k % 2] += u * (-1) ** (k // 2) * v**k
                    u = u * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
                return total[0] if part == "P" else total[1] / v
            scale = m.sqrt(m.pi) * m.sqrt(m.sqrt(x))
            # Ai and Bi are two components of one rotation.
            a, b = m.airyai(-x) * scale, m.airybi(-x) * scale
            s, c = m.sin(z + m.pi / 4), m.cos(z + m.pi / 4)
            return a * s + b * c if part == "P" else (b * s - a * c) / v

        return value

    for part in "PQ":
        what = "`P`" if part == "P" else "`Q z`"
        table(f"AIRY_{part}", f"{what} of `Ai(-x)` in `1 / z^2`.", wave(part), 0, 1 / zeta(left_edge) ** 2)


def temme() -> None:
    """C_k(eta) of Temme's expansion of the incomplete gamma functions as power series of eta.

    With `mu(eta)` the inverse of `eta^2 / 2 = mu - log(1 + mu)`: C_0 = 1 / mu - 1 / eta and
    C_k = (1 / eta) d/deta C_{k-1} + (gamma_k / mu), gamma_k Stirling's coefficients (DLMF 8.12).
    """
    n = 44
    # mu = a_1 eta + a_2 eta^2 + ..; mu' mu = eta (1 + mu).
    a = [m.mpf(0), m.mpf(1)] + [m.mpf(0)] * n
    for i in range(2, n + 2):
        rest = sum(a[j] * a[i + 1 - j] for j in range(2, i))
        a[i] = (a[i - 1] - (i + 1) * rest / 2) / (i + 1)
    # 1 / mu = (1 / eta) * (1 / (1 + a_2 eta + ..))
    inverse = [m.mpf(1)] + [m.mpf(0)] * n
    for i in range(1, n + 1):
        inverse[i] = -sum(a[j + 1] * inverse[i - j] for j in range(1, i + 1))
    # Stirling's coefficients of Gamma*(a) = sum gamma_k (-1)^k / a^k from the expansion of its
    # logarithm.
    order = 14
    log = [m.mpf(0)] * (order + 1)
    for k in range(1, order // 2 + 1):
        if 2 * k - 1 <= order:
            log[2 * k - 1] = m.bernoulli(2 * k) / (2 * k * (2 * k - 1))
    gamma = [m.mpf(1)] + [m.mpf(0)] * order
    for i in range(1, order + 1):
        gamma[i] = sum(j * log[j] * gamma[i - j] for j in range(1, i + 1)) / i
    c = [inverse[i + 1] for i in range(n)]
    rows = [c]
    for k in range(1, order):
        sign = (-1) ** k
        d = [(i + 2) * c[i + 2] + sign * gamma[k] * inverse[i + 1] for i in range(len(c) - 2)]
        rows.append(d)
        c = d
    reach, least = m.mpf("0.34"), m.mpf(TEMME_FROM)
    for field, bits in (("SINGLE", 28), ("DOUBLE", 58)):
        limit = m.mpf(2) ** -bits
        kept = []
        for k, row in enumerate(rows):
            numbers = [x for i, x in enumerate(row)]
            while numbers and abs(numbers[-1]) * reach ** (len(numbers) - 1) / least**k < limit / 4:
                numbers.pop()
            if not numbers:
                break
            kept.append([float(x) for x in numbers])
        else:
            raise AssertionError("more orders are needed")
        print(f"/// `C_k(eta)` of Temme's expansion as powers of eta, for a from {TEMME_FROM} and |eta| to 0.34.")
        print(f"pub const TEMME_{field}: &[&[f64]] = &[")
        for numbers in kept:
            texts = [f"{x:.9e}" if field == "SINGLE" else repr(x) for x in numbers]
            print(f"    &[{', '.join(texts)}],")
        print("];")


TEMME_FROM = 30


def zeta_table() -> None:
    """B_2k / (2k)! of the Euler-Maclaurin formula."""
    numbers = [float(m.bernoulli(2 * k) / m.factorial(2 * k)) for k in range(1, 13)]
    print("/// `B_2k / (2 k)!`, k from 1.")
    print(f"pub const EULER_MACLAURIN: [f64; {len(numbers)}] = [{', '.join(repr(x) for x in numbers)}];")


def main() -> None:
    print("//! Polynomials and constants of the special functions, written by scripts/special_polynomials.py.\n")
    print("#![allow(clippy::excessive_precision, clippy::approx_constant)]\n")
    print("use super::polynomial::{Constant, Polynomial};\n")
    table("LGAMMA_1", "`lgamma(1 + z) / (z (z - 1))` in z.", lgamma_ratio, m.mpf("-0.3"), m.mpf("0.25"))
    table("LGAMMA_2", "`lgamma(1 + z) / (z (z - 1))` in z.", lgamma_ratio, m.mpf("0.25"), 1)
    table("LGAMMA_3", "`lgamma(1 + z) / (z (z - 1))` in z.", lgamma_ratio, 1, 2)
    table("LGAMMA_FAR", "Stirling's series of `lgamma(x)`, times x, in `1 / x^2`.", stirling_rest, 0, m.mpf(1) / 64)
    constant("DIGAMMA_ROOT", "Less 1, the positive root of digamma.", DIGAMMA_ROOT - 1)

    def ratio(z):
        return m.digamma(1 + z) / (1 + z - DIGAMMA_ROOT)

    table("DIGAMMA", "`digamma(1 + z)`, its root divided out, in z.", ratio, 0, 1)
    text = "`(log(x) - 1 / (2 x) - digamma(x)) x^2` in `1 / x^2`."
    table("DIGAMMA_FAR", text, digamma_rest, 0, m.mpf(1) / 100)
    table("ERFCX", "`(1 + 2 x) erfcx(x)` in `(x - 3.75) / (x + 3.75)`.", erfcx_mapped, -1, 1)
    text = "`erfinv(x) / x` in `w = -log(1 - x^2)`."
    table("ERFINV_1", text, inverse_erf_near, 0, 2)
    table("ERFINV_2", text, inverse_erf_near, 2, 6)
    text = "`erfinv(x) / sqrt(w)` in `1 / sqrt(w)`."
    table("ERFINV_3", text, inverse_erf_far, 1 / m.sqrt(m.mpf(17)), 1 / m.sqrt(m.mpf(6)))
    table("ERFINV_4", text, inverse_erf_far, m.mpf("0.0363"), 1 / m.sqrt(m.mpf(17)))
    bessel_tables()
    airy_tables()
    temme()
    zeta_table()


if __name__ == "__main__":
    main()
