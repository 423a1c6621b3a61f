//! Derivatives of samples of gamma and beta distributions with respect to a parameter, for the
//! reparameterisation of both.
//!
//! With `F` the distribution function and `p` the density, a sample that stays at its quantile
//! moves by `-(dF/da) / p` (M. Figurnov, S. Mohamed, A. Mnih, "Implicit Reparameterization
//! Gradients", 2018). As `dp/da` is `p` times a difference of logarithms, `log t - E[log t]`, the
//! integrand of the numerator has one sign on one side of `x`, and the integral is taken over that
//! side: from 0, or to the upper end. Both integrals are computed here without terms that cancel:
//!
//! - for small `x` (for beta, near either end), the power series of the incomplete function, with
//!   each term multiplied by its logarithmic derivative, a difference of digammas;
//! - elsewhere, an integral over `v = |log t - log x|`, for beta `|logit t - logit x|`. There the
//!   density is `e^-h` with a convex `h`, so the integrand is negligible from a point on where `h`
//!   is large, and tanh-sinh quadrature up to that point works for all parameters.

use super::gamma::digamma;
use super::sum::fused;
use super::tables::DIGAMMA_FAR;
use crate::builder::Value;
use crate::math;
use crate::types::ScalarType;
use std::f64::consts::FRAC_PI_2;

/// The most terms of a series: each is about half of the one before.
const TERMS: u32 = 200;
/// From here on, the difference of digamma and the logarithm is used.
const FAR: f64 = 10.0;

/// The parameters of the quadrature and of the series, for each type.
struct Rule {
    /// The value of `h` at which the integral is truncated.
    reach: f64,
    /// The first node and the distance between nodes, before the substitution.
    first: f64,
    step: f64,
    nodes: u32,
    /// Terms of Taylor's series of `e^w - 1 - w` up to 0.7, and of the logarithm's up to 0.4.
    exponential: u32,
    logarithm: i32,
    epsilon: f64,
}

const SINGLE: Rule = Rule {
    reach: 20.0,
    first: -2.6,
    step: 0.13,
    nodes: 41,
    exponential: 8,
    logarithm: 6,
    epsilon: f32::EPSILON as f64 / 4.0,
};
const DOUBLE: Rule = Rule {
    reach: 40.0,
    first: -3.4,
    step: 0.05,
    nodes: 137,
    exponential: 16,
    logarithm: 13,
    epsilon: f64::EPSILON / 4.0,
};

fn rule(x: Value<'_>) -> &'static Rule {
    if x.scalar() == ScalarType::F64 { &DOUBLE } else { &SINGLE }
}

/// `e^w - 1 - w`
fn exponential_rest(w: Value<'_>) -> Value<'_> {
    let sum = (3..=rule(w).exponential).rev().fold(w.like(1.0), |sum, k| 1.0 + sum * w * (1.0 / f64::from(k)));
    w.abs().lt(0.7).select(0.5 * w * w * sum, math::expm1(w) - w)
}

/// `z - log(1 + z)`
fn logarithm_rest(z: Value<'_>) -> Value<'_> {
    // With t = z / (2 + z): log(1 + z) = 2 atanh(t), and z - 2 t = z t.
    let t = z / (2.0 + z);
    let square = t * t;
    let odd = |k: i32| 2.0 / f64::from(2 * k + 3);
    let tail = (0..rule(z).logarithm).rev().fold(z.like(0.0), |sum, k| sum * square + odd(k));
    z.abs().lt(0.4).select(z * t - t * square * tail, z - math::log1p(z))
}

/// `log(1 - p + p e^w)`, for p of 1/2 and less.
fn log_mixture<'b>(p: Value<'b>, w: Value<'b>) -> Value<'b> {
    // For a large w, where the exponential would soon overflow, only p e^w contributes.
    w.gt(60.0).select(w + math::log(p), math::log1p(p * math::expm1(w.min(60.0))))
}

/// [`log_mixture`] less `p w`, its tangent at 0.
fn mixture_rest<'b>(p: Value<'b>, w: Value<'b>) -> Value<'b> {
    let near = w.max(-1.0).min(1.0);
    let near = p * exponential_rest(near) - logarithm_rest(p * math::expm1(near));
    w.abs().lt(1.0).select(near, log_mixture(p, w) - p * w)
}

/// The derivative of [`mixture_rest`].
fn mixture_slope<'b>(p: Value<'b>, w: Value<'b>) -> Value<'b> {
    let (e, r) = (math::expm1(w.min(1.0)), math::expm1(-w.max(0.0)));
    p * (1.0 - p) * w.gt(1).select(-r / (1.0 + (1.0 - p) * r), e / (1.0 + p * e))
}

/// `log a - digamma(a)` for an a of [`FAR`] and more.
fn log_less_digamma(a: Value<'_>) -> Value<'_> {
    let r = math::reciprocal(a);
    let square = r * r;
    0.5 * r + square * DIGAMMA_FAR.at(square)
}

/// `log(1 + z)`, or the logarithm of `whole` = 1 + z where z is large.
fn log_ratio<'b>(z: Value<'b>, whole: Value<'b>) -> Value<'b> {
    z.abs().lt(0.5).select(math::log1p(z), math::log(whole))
}

/// The sum of non-negative terms `t_n f_n`; `next` computes the next `t` and `f`.
fn series<'b>(
    term: Value<'b>,
    factor: Value<'b>,
    next: impl Fn(Value<'b>, Value<'b>, Value<'b>) -> (Value<'b>, Value<'b>),
) -> Value<'b> {
    let b = term.builder();
    let (t, f, n) = (b.var(term), b.var(factor), b.var(term.like(0.0)));
    let sum = b.var(term * factor);
    let last = b.var(term * factor);
    let left = b.var(b.u32(TERMS));
    b.while_(
        || last.get().gt(sum.get() * rule(term).epsilon) & left.get().gt(0),
        || {
            let (term, factor) = next(t.get(), f.get(), n.get());
            t.set(term);
            f.set(factor);
            n.set(n.get() + 1.0);
            last.set(term * factor);
            sum.set(sum.get() + last.get());
            left.set(left.get() - 1);
        },
    );
    sum.get()
}

/// The integral of `e^-h(v) weight(v)` over positive v, for a convex `h` with `h(0) = 0` and the
/// derivative `slope`. `guess` estimates where `h` is large.
fn integral<'b>(
    guess: Value<'b>,
    h: impl Fn(Value<'b>) -> Value<'b>,
    slope: impl Fn(Value<'b>) -> Value<'b>,
    weight: impl Fn(Value<'b>) -> Value<'b>,
) -> Value<'b> {
    let b = guess.builder();
    let rule = rule(guess);
    let end = b.var(guess);
    let left = b.var(b.u32(60));
    b.while_(
        || h(end.get()).lt(rule.reach) & left.get().gt(0),
        || {
            end.set(end.get() * 2.0);
            left.set(left.get() - 1);
        },
    );
    // Newton's iteration for a convex function converges from the right of the root.
    let step = b.var(end.get());
    left.set(b.u32(12));
    b.while_(
        || step.get().gt(end.get() * 0.01) & left.get().gt(0),
        || {
            step.set((h(end.get()) - rule.reach) / slope(end.get()));
            end.set(end.get() - step.get());
            left.set(left.get() - 1);
        },
    );
    let end = end.get();
    let sum = b.var(guess.like(0.0));
    b.for_(b.u32(0), b.u32(rule.nodes), 1, |i| {
        let e = math::exp(i.cast(guess.scalar()) * rule.step + rule.first);
        let r = math::reciprocal(e);
        // v = end / (1 + e^(-pi sinh)) is exact to a few bits near 0, and its weight with it.
        let rest = math::exp((r - e) * FRAC_PI_2);
        let part = math::reciprocal(1.0 + rest);
        let v = end * part;
        sum.set(sum.get() + part * (rest * part) * (e + r) * math::exp(-h(v)) * weight(v));
    });
    sum.get() * end * (FRAC_PI_2 * rule.step)
}

/// Where the parabola with the derivatives `slope` and `curvature` at 0 reaches the value of `h` at
/// which the integral is truncated.
fn parabola_end<'b>(slope: Value<'b>, curvature: Value<'b>) -> Value<'b> {
    let reach = rule(slope).reach;
    let slope = slope.max(0.0);
    2.0 * reach / (slope + math::sqrt(slope * slope + 2.0 * reach * curvature))
}

/// `-(dP/da) / p` of the gamma distribution of shape `a` and scale 1 at `x`: the derivative of a
/// sample with respect to the shape. As on the CPU, zero unless `x` is positive.
pub fn gamma_sample_gradient<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let one = a.like(1.0);
    let proper = a.is_above_zero() & x.is_above_zero() & !a.is_inf() & !x.is_inf();
    let (ca, cx) = (proper.select(a, one), proper.select(x, one));
    let small = cx.le(0.5);
    let far = ca.ge(FAR) & !small;
    let log = math::log(cx);
    let psi = digamma(far.select(one, small.select(ca + 1.0, ca)));
    let result = b.var(one);
    b.if_else(
        small,
        || {
            // x^n / (a (a + 1) .. (a + n)), times digamma(a + n + 1) - log x
            result.set(series(math::reciprocal(ca), psi - log, |t, f, n| {
                let r = math::reciprocal(ca + (n + 1.0));
                (t * (cx * r), f + r)
            }));
        },
        || {
            let distance = cx - ca;
            let near = log_ratio(distance / ca, cx / ca) + log_less_digamma(far.select(ca, one * FAR));
            let d = far.select(near, log - psi);
            let sign = d.ge(0).select(one, -one);
            let slope = sign * distance;
            result.set(integral(
                parabola_end(slope, cx),
                |v| cx * exponential_rest(sign * v) + slope * v,
                |v| sign * cx * math::expm1(sign * v) + slope,
                |v| sign * d + v,
            ));
        },
    );
    let y = cx * result.get();
    let y = proper.select(y, x.le(0).select(a.like(0.0), a.like(f64::NAN)));
    (a.is_nan() | x.is_nan()).select(a.like(f64::NAN), y)
}

/// `-(dI/da) / p / (1 - x)` of the beta distribution of `a` and `total - a`, with constant
/// `total - a`, at `x`. As on the CPU, zero unless `x` is positive.
pub fn beta_sample_gradient<'b>(x: Value<'b>, a: Value<'b>, total: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let one = a.like(1.0);
    let proper = x.is_above_zero() & x.le(1) & a.is_above_zero() & a.le(total) & !total.is_inf();
    let cx = proper.select(x, one * 0.5);
    let (ca, ct) = (proper.select(a, one), proper.select(total, one * 2.0));
    let cy: Value<'b> = 1.0 - cx;
    let cb = ct - ca;
    let low = cx.le(0.5);
    // x total - a = (total - a) - (1 - x) total, from the smaller of x and 1 - x.
    let distance = low.select(fused(cx, ct, -ca), fused(-cy, ct, cb));
    let log = low.select(math::log(cx), math::log1p(low.select(cx.like(0.0), -cy)));
    let most = ct.max(1.0);
    let lower = (cx * most).le(0.5);
    let far = ca.ge(FAR) & !lower;
    let psi = digamma(far.select(one, lower.select(ca + 1.0, ca)));
    let psi_total = digamma(far.select(one, ct));
    let near = log_ratio(distance / ca, cx * ct / ca)
        + (log_less_digamma(far.select(ca, one * FAR)) - log_less_digamma(far.select(ct, one * FAR)));
    // log x - E[log], less 1 / a for the series.
    let d = far.select(near, (log - psi) + psi_total);
    let upper = !lower & (cy * most).le(0.5) & d.ge(0);
    let result = b.var(one);
    b.if_else(
        lower | upper,
        || {
            // (total)_n x^n / (a)_(n+1), times digamma(a + n + 1) - digamma(total + n) - log x; and
            // from the other end (total)_n y^n / (b)_(n+1), times log x - digamma(a) +
            // digamma(total + n).
            let (first, argument) = (lower.select(ca, cb), lower.select(cx, cy));
            result.set(series(math::reciprocal(first), lower.select(-d, d), |t, f, n| {
                let (r, s) = (math::reciprocal(first + (n + 1.0)), math::reciprocal(ct + n));
                (t * (argument * ((ct + n) * r)), f + lower.select(r - s, s))
            }));
        },
        || {
            let sign = d.ge(0).select(one, -one);
            // log(1 + x (e^(s v) - 1)) = s v + log(1 + (1 - x) (e^(-s v) - 1)): the smaller one is
            // used.
            let (part, turned) = (low.select(cx, cy), low.select(sign, -sign));
            let slope = sign * distance;
            result.set(integral(
                parabola_end(slope, ct * (cx * cy)),
                |v| ct * mixture_rest(part, turned * v) + slope * v,
                |v| ct * turned * mixture_slope(part, turned * v) + slope,
                |v| {
                    let log = sign * log_mixture(part, turned * v);
                    sign * d + low.select(v - log, -log)
                },
            ));
        },
    );
    let y = cx * result.get();
    let y = proper.select(y, x.le(0).select(a.like(0.0), a.like(f64::NAN)));
    (x.is_nan() | a.is_nan() | total.is_nan()).select(a.like(f64::NAN), y)
}
