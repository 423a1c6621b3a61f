//! Orthogonal polynomials of degree n, elementwise in x and n. A fractional n is cut; a negative
//! one, NaN and infinity give 0.
//!
//! By their recurrences, one rounding less a step than written, which stop where a value has
//! overflowed. Chebyshev's of a high degree by their trigonometric form within -1 to 1, and by the
//! hyperbolic one outside, which take the same time for every degree: of a degree of 2^53, just
//! above 1, no recurrence would end. Laguerre's and Legendre's of a degree above 2^20 are NaN, as
//! Hermite's are above the CPU's limits: the CPU takes minutes for one, and a GPU's driver ends a
//! program that does.

use crate::functions;
use crate::pointwise::rule::Rule;
use crate::pointwise::special::acosh;
use crate::primitives::loops::MAX_SOFTWARE_ITERATIONS;
use dml_kernel::math::special::fused;
use dml_kernel::{ScalarType, Value, math};

/// A polynomial of a cut degree; 0 where that is negative or, as C converts to an integer, does not
/// fit.
fn valid<'b>(x: Value<'b>, n: Value<'b>, body: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Value<'b> {
    let n = n.trunc();
    let valid = n.ge(0) & n.lt(2f64.powi(63));
    valid.select(body(x, valid.select(n, 0)), 0)
}

/// The most steps of a recurrence.
const MAX_STEPS: f64 = (1 << 20) as f64;

/// Steps that are a turn of a recurrence's loop on a software adapter.
const SOFTWARE_STEPS: u32 = (MAX_STEPS as u64 / MAX_SOFTWARE_ITERATIONS + 1) as u32;

/// NaN where a recurrence of degree n takes too many steps.
fn bounded<'b>(n: Value<'b>, value: Value<'b>) -> Value<'b> {
    n.gt(MAX_STEPS).select(value.like(f64::NAN), value)
}

/// The polynomial of degree n from those of degrees 0 (one) and 1: `step(k, P_k-1, P_k)` is that of
/// degree k + 1. So many `steps` are a turn of the loop.
fn recurrence<'b>(
    n: Value<'b>,
    first: Value<'b>,
    steps: u32,
    step: impl Fn(Value<'b>, Value<'b>, Value<'b>) -> Value<'b>,
) -> Value<'b> {
    let b = n.builder();
    let (before, now, k) = (b.var(first.like(1.0)), b.var(first), b.var(b.i32(1)));
    // Of more steps the result is NaN, see `bounded`.
    let last = n.gt(MAX_STEPS).select(n.like(0.0), n).cast(ScalarType::I32);
    let more = || k.get().lt(last) & !now.get().is_nan();
    let advance = || {
        let next = step(k.get().cast(n.scalar()), before.get(), now.get());
        before.set(now.get());
        now.set(next);
        k.set(k.get() + 1);
    };
    b.while_(more, || {
        advance();
        (1..steps).for_each(|_| b.if_(more(), advance));
    });
    n.eq(0).select(n.like(1.0), now.get())
}

/// Whether a whole number is odd.
fn odd(n: Value<'_>) -> Value<'_> {
    let half = n * 0.5;
    half.ne(half.trunc())
}

/// `value`, or its negation where n is odd.
fn alternating<'b>(n: Value<'b>, value: Value<'b>) -> Value<'b> {
    odd(n).select(-value, value)
}

/// Chebyshev's polynomials of the four kinds.
#[derive(Copy, Clone)]
enum Kind {
    T,
    U,
    V,
    W,
}

/// The degree above which Chebyshev's polynomials outside of -1 to 1 are computed in the hyperbolic
/// form.
const HYPERBOLIC: f64 = 4096.0;

/// Chebyshev's polynomial of a high degree right of 1: NaN where it overflows, as by the
/// recurrence.
fn hyperbolic<'b>(x: Value<'b>, n: Value<'b>, kind: Kind) -> Value<'b> {
    let t = acosh(x);
    let value = match kind {
        Kind::T => math::cosh(n * t),
        Kind::U => math::sinh((n + 1.0) * t) / math::sinh(t),
        Kind::V => math::cosh((n + 0.5) * t) / math::cosh(t * 0.5),
        Kind::W => math::sinh((n + 0.5) * t) / math::sinh(t * 0.5),
    };
    value.is_inf().select(x.like(f64::NAN), value)
}

/// Above the degree `most` (CPU's) by the trigonometric form.
fn chebyshev<'b>(x: Value<'b>, n: Value<'b>, kind: Kind, most: f64) -> Value<'b> {
    let b = x.builder();
    let inside = x.abs().lt(1.0) & n.gt(most);
    let edge = x.abs().eq(1.0);
    let far = x.abs().gt(1.0) & n.gt(HYPERBOLIC);
    let twice = x + x;
    let first = match kind {
        Kind::T => x,
        Kind::U => twice,
        Kind::V => twice - 1.0,
        Kind::W => twice + 1.0,
    };
    let result = b.var(x);
    b.if_else(
        inside,
        || {
            let angle = math::acos(x);
            result.set(match kind {
                Kind::T => math::cos(n * angle),
                Kind::U => math::sin((n + 1.0) * angle) / math::sin(angle),
                Kind::V => math::cos((n + 0.5) * angle) / math::cos(0.5 * angle),
                Kind::W => math::sin((n + 0.5) * angle) / math::sin(0.5 * angle),
            });
        },
        || {
            let degree = (edge | far).select(x.like(0.0), n);
            result.set(recurrence(degree, first, 1, |_, before, now| fused(twice, now, -before)));
        },
    );
    // Left of -1 they are those of the other side, V and W changing places, with the sign of the
    // degree.
    b.if_(far, || {
        let size = x.abs();
        let mirrored = match kind {
            Kind::V => Kind::W,
            Kind::W => Kind::V,
            other => other,
        };
        let left = alternating(n, hyperbolic(size, n, mirrored));
        result.set(x.gt(0).select(hyperbolic(size, n, kind), left));
    });
    let one = x.like(1.0);
    let (right, left) = match kind {
        Kind::T => (one, one),
        Kind::U => (n + 1.0, n + 1.0),
        Kind::V => (one, n + n + 1.0),
        Kind::W => (n + n + 1.0, one),
    };
    edge.select(x.gt(0).select(right, alternating(n, left)), result.get())
}

/// Hermite's polynomials, the physicists' for a `factor` of 2 and the probabilists' for 1, of the
/// argument times that.
fn hermite<'b>(x: Value<'b>, n: Value<'b>, factor: f64) -> Value<'b> {
    // CPU's limits of the degree: NaN above.
    let limit = if x.scalar() == ScalarType::F64 { 512.0 } else { 128.0 };
    let value = recurrence(n.min(limit), x, 1, |k, before, now| fused(x, now, -(k * factor * before)));
    n.gt(limit).select(x.like(f64::NAN), value)
}

fn laguerre<'b>(x: Value<'b>, n: Value<'b>, steps: u32) -> Value<'b> {
    let first = 1.0 - x;
    let degree = x.eq(0).select(n.like(0.0), n);
    let value = recurrence(degree, first, steps, |k, before, now| fused(k + k + first, now, -(k * before)) / (k + 1.0));
    bounded(degree, value)
}

fn legendre<'b>(x: Value<'b>, n: Value<'b>, steps: u32) -> Value<'b> {
    let edge = x.abs().eq(1.0);
    let degree = edge.select(n.like(0.0), n);
    let value = recurrence(degree, x, steps, |k, before, now| fused((k + k + 1.0) * x, now, -(k * before)) / (k + 1.0));
    let value = bounded(degree, value);
    let one = x.like(1.0);
    edge.select(x.gt(0).select(one, alternating(n, one)), value)
}

functions! {
    /// Chebyshev's polynomial of the first kind, of degree `n`.
    CHEBYSHEV_POLYNOMIAL_T = "chebyshev_polynomial_t"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x, n, Kind::T, 6.0))
    };
    /// Chebyshev's polynomial of the second kind, of degree `n`.
    CHEBYSHEV_POLYNOMIAL_U = "chebyshev_polynomial_u"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x, n, Kind::U, 8.0))
    };
    /// Chebyshev's polynomial of the third kind, of degree `n`.
    CHEBYSHEV_POLYNOMIAL_V = "chebyshev_polynomial_v"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x, n, Kind::V, 8.0))
    };
    /// Chebyshev's polynomial of the fourth kind, of degree `n`.
    CHEBYSHEV_POLYNOMIAL_W = "chebyshev_polynomial_w"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x, n, Kind::W, 8.0))
    };
    /// Chebyshev's polynomial of the first kind, of `2x - 1`, of degree `n`.
    SHIFTED_CHEBYSHEV_POLYNOMIAL_T = "shifted_chebyshev_polynomial_t"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x + x - 1.0, n, Kind::T, 6.0))
    };
    /// Chebyshev's polynomial of the second kind, of `2x - 1`, of degree `n`.
    SHIFTED_CHEBYSHEV_POLYNOMIAL_U = "shifted_chebyshev_polynomial_u"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x + x - 1.0, n, Kind::U, 6.0))
    };
    /// Chebyshev's polynomial of the third kind, of `2x - 1`, of degree `n`.
    SHIFTED_CHEBYSHEV_POLYNOMIAL_V = "shifted_chebyshev_polynomial_v"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x + x - 1.0, n, Kind::V, 6.0))
    };
    /// Chebyshev's polynomial of the fourth kind, of `2x - 1`, of degree `n`.
    SHIFTED_CHEBYSHEV_POLYNOMIAL_W = "shifted_chebyshev_polynomial_w"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| chebyshev(x + x - 1.0, n, Kind::W, 4.0))
    };
    /// Hermite's polynomial, the physicists', of degree `n`.
    HERMITE_POLYNOMIAL_H = "hermite_polynomial_h"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| hermite(x + x, n, 2.0))
    };
    /// Hermite's polynomial, the probabilists', of degree `n`.
    HERMITE_POLYNOMIAL_HE = "hermite_polynomial_he"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| hermite(x, n, 1.0))
    };
    /// Laguerre's polynomial, of degree `n`.
    LAGUERRE_POLYNOMIAL_L = "laguerre_polynomial_l"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| laguerre(x, n, 1))
    };
    /// Laguerre's polynomial, several steps a turn of its loop, of degree `n`.
    LAGUERRE_POLYNOMIAL_L_UNROLLED = "laguerre_polynomial_l_unrolled"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| laguerre(x, n, SOFTWARE_STEPS))
    };
    /// Legendre's polynomial, of degree `n`.
    LEGENDRE_POLYNOMIAL_P = "legendre_polynomial_p"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| legendre(x, n, 1))
    };
    /// Legendre's polynomial, several steps a turn of its loop, of degree `n`.
    LEGENDRE_POLYNOMIAL_P_UNROLLED = "legendre_polynomial_p_unrolled"(x, n).heavy().rule(Rule::Float) => {
        valid(x, n, |x, n| legendre(x, n, SOFTWARE_STEPS))
    };
}
