//! Orthogonal polynomials of degree n, elementwise in x and n. A fractional n is cut; a negative one, NaN and infinity
//! give 0.
//!
//! By their recurrences, one rounding less a step than written, which stop where a value has overflowed. Chebyshev's of a high degree within -1 to 1 by their
//! trigonometric form, which takes the same time for every degree.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{Rule, check_not_half, heavy_operator};
use dml_kernel::math::special::fused;
use dml_kernel::{ScalarType, Value, math};

operators! {
    run(x, n, out; "chebyshev_polynomial_t", |x, n| chebyshev(x, n, Kind::T, 6.0)) {
        "aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_u", |x, n| chebyshev(x, n, Kind::U, 8.0)) {
        "aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_v", |x, n| chebyshev(x, n, Kind::V, 8.0)) {
        "aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_w", |x, n| chebyshev(x, n, Kind::W, 8.0)) {
        "aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_t", |x, n| chebyshev(x + x - 1.0, n, Kind::T, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_u", |x, n| chebyshev(x + x - 1.0, n, Kind::U, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_v", |x, n| chebyshev(x + x - 1.0, n, Kind::V, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_w", |x, n| chebyshev(x + x - 1.0, n, Kind::W, 4.0)) {
        "aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "hermite_polynomial_h", |x, n| hermite(x + x, n, 2.0)) {
        "aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_h.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "hermite_polynomial_he", |x, n| hermite(x, n, 1.0)) {
        "aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_he.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "laguerre_polynomial_l", laguerre) {
        "aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
        "aten::special_laguerre_polynomial_l.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "legendre_polynomial_p", legendre) {
        "aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
        "aten::special_legendre_polynomial_p.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn run(call: &mut Call, x: AnyTensor, n: AnyTensor, out: Out, name: &'static str, body: math::Binary) -> Result<()> {
    check_not_half(call, &[x, n], name)?;
    heavy_operator(call, out, Rule::Float, name, &[x.into(), n.into()], |_, v| {
        let (x, n) = (v[0], v[1].trunc());
        // As C converts to an integer: what does not fit is negative.
        let valid = n.ge(0) & n.lt(2f64.powi(63));
        valid.select(body(x, valid.select(n, 0)), 0)
    })
}

/// The polynomial of degree n from those of degrees 0 (one) and 1: `step(k, P_k-1, P_k)` is that of degree k + 1.
fn recurrence<'b>(
    n: Value<'b>,
    first: Value<'b>,
    step: impl Fn(Value<'b>, Value<'b>, Value<'b>) -> Value<'b>,
) -> Value<'b> {
    let b = n.builder();
    let (before, now, k) = (b.var(first.like(1.0)), b.var(first), b.var(b.i32(1)));
    let last = n.min(2f64.powi(30)).cast(ScalarType::I32);
    b.while_(
        || k.get().lt(last) & !now.get().is_nan(),
        || {
            let next = step(k.get().cast(n.scalar()), before.get(), now.get());
            before.set(now.get());
            now.set(next);
            k.set(k.get() + 1);
        },
    );
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

/// Above the degree `most` (CPU's) by the trigonometric form.
fn chebyshev<'b>(x: Value<'b>, n: Value<'b>, kind: Kind, most: f64) -> Value<'b> {
    let b = x.builder();
    let inside = x.abs().lt(1.0) & n.gt(most);
    let edge = x.abs().eq(1.0);
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
            let degree = edge.select(x.like(0.0), n);
            result.set(recurrence(degree, first, |_, before, now| fused(twice, now, -before)));
        },
    );
    let one = x.like(1.0);
    let (right, left) = match kind {
        Kind::T => (one, one),
        Kind::U => (n + 1.0, n + 1.0),
        Kind::V => (one, n + n + 1.0),
        Kind::W => (n + n + 1.0, one),
    };
    edge.select(x.gt(0).select(right, alternating(n, left)), result.get())
}

/// Hermite's polynomials, the physicists' for a `factor` of 2 and the probabilists' for 1, of the argument times that.
fn hermite<'b>(x: Value<'b>, n: Value<'b>, factor: f64) -> Value<'b> {
    // CPU's limits of the degree: NaN above.
    let limit = if x.scalar() == ScalarType::F64 { 512.0 } else { 128.0 };
    let value = recurrence(n.min(limit), x, |k, before, now| fused(x, now, -(k * factor * before)));
    n.gt(limit).select(x.like(f64::NAN), value)
}

fn laguerre<'b>(x: Value<'b>, n: Value<'b>) -> Value<'b> {
    let first = 1.0 - x;
    let degree = x.eq(0).select(n.like(0.0), n);
    recurrence(degree, first, |k, before, now| fused(k + k + first, now, -(k * before)) / (k + 1.0))
}

fn legendre<'b>(x: Value<'b>, n: Value<'b>) -> Value<'b> {
    let edge = x.abs().eq(1.0);
    let degree = edge.select(n.like(0.0), n);
    let value = recurrence(degree, x, |k, before, now| fused((k + k + 1.0) * x, now, -(k * before)) / (k + 1.0));
    let one = x.like(1.0);
    edge.select(x.gt(0).select(one, alternating(n, one)), value)
}
