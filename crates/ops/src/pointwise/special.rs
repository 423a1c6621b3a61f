//! Functions of one tensor composed of the math library's: inverse hyperbolic, logit, entropy, sinc, and replacements
//! of what is not a number.

use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, Rule, operator};
use dml_kernel::{DType, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(|c: &mut Call, out| float(c, out, "asinh", asinh), "aten::asinh", "aten::asinh_", "aten::asinh.out" @ 1),
    &overloads!(|c: &mut Call, out| float(c, out, "acosh", acosh), "aten::acosh", "aten::acosh_", "aten::acosh.out" @ 1),
    &overloads!(|c: &mut Call, out| float(c, out, "atanh", atanh), "aten::atanh", "aten::atanh_", "aten::atanh.out" @ 1),
    &overloads!(|c: &mut Call, out| float(c, out, "sinc", sinc), "aten::sinc", "aten::sinc_", "aten::sinc.out" @ 1),
    &overloads!(logit, "aten::logit", "aten::logit_", "aten::logit.out" @ 2),
    &overloads!(nan_to_num, "aten::nan_to_num", "aten::nan_to_num_", "aten::nan_to_num.out" @ 4),
    &overloads!(round_decimals, "aten::round.decimals", "aten::round_.decimals", "aten::round.decimals_out" @ 2),
    &[
        op("aten::special_entr", |c| float(c, Out::New, "entr", entr)),
        op("aten::special_entr.out", |c| float(c, Out::Arg(1), "entr", entr)),
        op("aten::logit_backward", |c| logit_backward(c, Out::New)),
        op("aten::logit_backward.grad_input", |c| logit_backward(c, Out::Arg(3))),
    ],
];

fn float(call: &mut Call, out: Out, family: &'static str, body: math::Unary) -> Result<()> {
    operator(call, out, Rule::Float, family, &[0], &[], |_, v| body(v[0]))
}

/// Beyond it, `x^2 + 1` is `x^2` and may overflow.
const LARGE: f64 = 1e8;

/// `log(|x| + sqrt(x^2 + 1))` with the sign of x, by log1p for small x.
fn asinh(x: Value<'_>) -> Value<'_> {
    let a = x.abs();
    let near = math::log1p(a + a * a / (1.0 + math::sqrt(a * a + 1.0)));
    let far = math::log(a) + std::f64::consts::LN_2;
    crate::pointwise::binary::copysign(a.gt(LARGE).select(far, near), x)
}

fn acosh(x: Value<'_>) -> Value<'_> {
    let t = x - 1.0;
    let near = math::log1p(t + math::sqrt(t * (t + 2.0)));
    let far = math::log(x) + std::f64::consts::LN_2;
    x.lt(1).select(x.like(f64::NAN), x.gt(LARGE).select(far, near))
}

fn atanh(x: Value<'_>) -> Value<'_> {
    let a = x.abs();
    crate::pointwise::binary::copysign(0.5 * math::log1p(2.0 * a / (1.0 - a)), x)
}

fn sinc(x: Value<'_>) -> Value<'_> {
    let angle = x * std::f64::consts::PI;
    x.eq(0).select(x.like(1.0), math::sin(angle) / angle)
}

fn entr(x: Value<'_>) -> Value<'_> {
    let inside = x.eq(0).select(x.like(0.0), -x * math::log(x));
    x.lt(0).select(x.like(f64::NEG_INFINITY), inside)
}

/// The `eps` argument at `i`, or -1.
fn eps(call: &Call, i: usize) -> Result<f64> {
    Ok(call.opt_scalar(i)?.map_or(-1.0, Number::to_f64))
}

/// `logit(self, eps)`: `log(x / (1 - x))`, x held `eps` away from 0 and 1
fn logit(call: &mut Call, out: Out) -> Result<()> {
    let eps = eps(call, 1)?;
    if eps < 0.0 {
        return float(call, out, "logit", |x| math::log(x / (1.0 - x)));
    }
    let bounds = [eps, 1.0 - eps].map(Number::Double);
    operator(call, out, Rule::Float, "logit_eps", &[0], &bounds, |_, v| {
        let x = v[0].lt(v[1]).select(v[1], v[0].gt(v[2]).select(v[2], v[0]));
        math::log(x / (1.0 - x))
    })
}

/// `logit_backward(grad, self, eps)`: outside of the range NaN, or 0 where `eps` is given
fn logit_backward(call: &mut Call, out: Out) -> Result<()> {
    let eps = eps(call, 2)?;
    let (low, outside) = if eps < 0.0 { (0.0, f64::NAN) } else { (eps, 0.0) };
    let numbers = [low, 1.0 - low, outside].map(Number::Double);
    operator(call, out, Rule::Promote, "logit_backward", &[0, 1], &numbers, |_, v| {
        let (grad, x) = (v[0], v[1]);
        (x.lt(v[2]) | x.gt(v[3])).select(v[4], grad / (x * (1.0 - x)))
    })
}

/// Largest finite number of a dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// `nan_to_num(self, nan, posinf, neginf)`
fn nan_to_num(call: &mut Call, out: Out) -> Result<()> {
    let dtype = call.tensor(0)?.dtype;
    if !dtype.is_float() {
        return operator(call, out, Rule::Promote, "identity", &[0], &[], |_, v| v[0]);
    }
    let or = |i: usize, default: f64| Ok::<_, crate::Error>(call.opt_scalar(i)?.unwrap_or(Number::Double(default)));
    let numbers = [or(1, 0.0)?, or(2, largest(dtype))?, or(3, -largest(dtype))?];
    operator(call, out, Rule::Promote, "nan_to_num", &[0], &numbers, |_, v| {
        let x = v[0];
        let infinite = x.gt(0).select(v[2], v[3]);
        x.is_nan().select(v[1], x.is_inf().select(infinite, x))
    })
}

/// `round(self, decimals)`
fn round_decimals(call: &mut Call, out: Out) -> Result<()> {
    let decimals = call.int(1)?;
    if !call.tensor(0)?.dtype.is_float() {
        return operator(call, out, Rule::Promote, "identity", &[0], &[], |_, v| v[0]);
    }
    let ten = [Number::Double(10f64.powi(decimals.unsigned_abs() as i32))];
    match decimals {
        0 => operator(call, out, Rule::Promote, "round", &[0], &[], |_, v| v[0].round()),
        1.. => operator(call, out, Rule::Promote, "round_up", &[0], &ten, |_, v| (v[0] * v[1]).round() / v[1]),
        _ => operator(call, out, Rule::Promote, "round_down", &[0], &ten, |_, v| (v[0] / v[1]).round() * v[1]),
    }
}
