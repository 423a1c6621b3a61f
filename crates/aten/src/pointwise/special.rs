//! Functions of one tensor composed of the math library's: inverse hyperbolic functions, logit,
//! entropy, sinc, and the replacement of NaN and infinities.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::pointwise::operator::{check_float, common_dtype, float_operator, operator, resized, strided};
use crate::{check, operators};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::special::{self as functions, largest};
use dml_compute::pointwise::{arithmetic, unary};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_compute::view::layout::preserved_strides;

operators! {
    float(self, out; of functions::ASINH) {
        "aten::asinh(Tensor self) -> Tensor",
        "aten::asinh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::asinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    float(self, out; of functions::ACOSH) {
        "aten::acosh(Tensor self) -> Tensor",
        "aten::acosh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::acosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    float(self, out; of functions::ATANH) {
        "aten::atanh(Tensor self) -> Tensor",
        "aten::atanh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::atanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    float(self, out; of functions::SINC) {
        "aten::sinc(Tensor self) -> Tensor",
        "aten::sinc_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sinc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    float(self, out; of functions::ENTR) {
        "aten::special_entr(Tensor self) -> Tensor",
        "aten::special_entr.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    logit(self, eps, out) {
        "aten::logit(Tensor self, float? eps=None) -> Tensor",
        "aten::logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)",
        "aten::logit.out(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    logit_backward(grad_output, self, eps, out) {
        "aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
        "aten::logit_backward.grad_input(Tensor grad_output, Tensor self, float? eps=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    nan_to_num(self, nan, posinf, neginf, out) {
        "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        "aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)",
        "aten::nan_to_num.out(Tensor self, float? nan=None, float? posinf=None, float? neginf=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    round_decimals(self, decimals, out) {
        "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
        "aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)",
        "aten::round.decimals_out(Tensor self, *, int decimals, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn float(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    operator(call, out, function, &[x], &[])
}

/// `log(x / (1 - x))`, with x clamped to `eps` from 0 and 1. A negative `eps` means none.
fn logit(call: &mut Call, x: AnyTensor, eps: Option<f64>, out: Out) -> Result<()> {
    let eps = eps.unwrap_or(-1.0);
    if eps < 0.0 {
        return float(call, x, out, &functions::LOGIT);
    }
    check_fits(Number::Double(eps), if x.dtype.is_float() { x.dtype } else { call.host.default_dtype() })?;
    let bounds = [eps, 1.0 - eps].map(Number::Double);
    operator(call, out, &functions::LOGIT_EPS, &[x], &bounds)
}

/// Out of range NaN, or 0 if `eps` is given.
fn logit_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, eps: Option<f64>, out: Out) -> Result<()> {
    let eps = eps.unwrap_or(-1.0);
    let common = common_dtype(call, &[grad, x]);
    if common.is_float() {
        check_fits(Number::Double(eps), common)?;
    }
    let (low, outside) = if eps < 0.0 { (0.0, f64::NAN) } else { (eps, 0.0) };
    let numbers = [low, 1.0 - low, outside].map(Number::Double);
    float_operator(call, out, &functions::LOGIT_BACKWARD, &[grad, x], &numbers)
}

fn nan_to_num(
    call: &mut Call,
    x: AnyTensor,
    nan: Option<f64>,
    positive: Option<f64>,
    negative: Option<f64>,
    out: Out,
) -> Result<()> {
    if let Out::Into(t) = out {
        let (given, own) = (t.dtype, x.dtype);
        check!(given == own, Runtime, "nan_to_num: dtype of out: {given} should be same as input: {own}");
    }
    if let (Out::InPlace(t), false) = (out, x.dtype.is_float()) {
        call.ret(t.clone());
        return Ok(());
    }
    let mut result = None;
    let strides = preserved_strides(&x);
    if !x.dtype.is_float() {
        return copy(call, x, out, &strides);
    }
    let out = strided(call, out, &mut result, x.dtype, (&x.sizes, &strides))?;
    let largest = largest(x.dtype);
    let numbers = [nan.unwrap_or(0.0), positive.unwrap_or(largest), negative.unwrap_or(-largest)].map(Number::Double);
    operator(call, out, &functions::NAN_TO_NUM, &[x], &numbers)
}

/// Integers are copied. A result that is the input is not written, expanded or not; another one is
/// checked when it is resized.
fn copy(call: &mut Call, x: AnyTensor, out: Out, strides: &[i64]) -> Result<()> {
    if let Out::Into(t) = out
        && t.handle != 0
        && t.handle == x.handle
    {
        call.ret(t.clone());
        return Ok(());
    }
    let (mut result, mut larger) = (None, None);
    let out = strided(call, out, &mut result, x.dtype, (&x.sizes, strides))?;
    let out = resized(call, out, &mut larger, (&x.sizes, &View::contiguous_strides(&x.sizes)))?;
    operator(call, out, &arithmetic::IDENTITY, &[x], &[])
}

fn round_decimals(call: &mut Call, x: AnyTensor, decimals: i64, out: Out) -> Result<()> {
    check_float(&x, "round_cpu")?;
    let ten = [Number::Double(10f64.powi(decimals.unsigned_abs() as i32))];
    match decimals {
        0 => operator(call, out, &unary::ROUND, &[x], &[]),
        1.. => operator(call, out, &functions::ROUND_UP, &[x], &ten),
        _ => operator(call, out, &functions::ROUND_DOWN, &[x], &ten),
    }
}
