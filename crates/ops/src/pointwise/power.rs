//! Powers of tensors and numbers.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::pointwise::binary::copysign;
use crate::pointwise::operator::{Argument, Rule, operator_of, resized, strided};
use crate::tensor::Tensor;
use crate::tensor::promote::{Promoted, result_type};
use crate::{check, operators};
use dml_kernel::{DType, ScalarType, Value, math};

operators! {
    of_tensor(self, exponent, out) {
        "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        "aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
        "aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
    of_number(self, exponent, out) {
        "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
        "aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
    to_number(self, exponent, out) {
        "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
        "aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Of a tensor to a tensor.
fn of_tensor(call: &mut Call, base: AnyTensor, exponent: AnyTensor, out: Out) -> Result<()> {
    check_not_bool(&[Promoted::Tensor(&base), Promoted::Tensor(&exponent)])?;
    operator_of(call, out, Rule::Promote, "pow", &[base.into(), exponent.into()], |_, v| power(v[0], v[1]))
}

/// Of a number to a tensor: the result is contiguous whatever the strides of the exponent. All powers of 1 are 1, in every dtype.
fn of_number(call: &mut Call, base: Number, exponent: AnyTensor, out: Out) -> Result<()> {
    let promoted = [Promoted::Scalar(base), Promoted::Tensor(&exponent)];
    let dtype = result_type(&promoted, call.host.default_dtype());
    let (mut result, strides) = (None, Tensor::contiguous_strides(&exponent.sizes));
    let mut given = None;
    let out = resized(call, out, &mut given, (&exponent.sizes, &strides))?;
    let out = strided(call, out, &mut result, dtype, (&exponent.sizes, &strides))?;
    if base.to_f64() == 1.0 && !matches!(base, Number::Bool(_)) {
        let dtype = out.tensor()?.dtype;
        return operator_of(call, out, Rule::As(dtype), "pow_of_1", &[exponent.into()], |_, v| {
            dml_kernel::convert(v[0].like(1.0), dtype)
        });
    }
    check_not_bool(&promoted)?;
    let arguments = [Argument::Scalar(base), exponent.into()];
    operator_of(call, out, Rule::Promote, "pow", &arguments, |_, v| power(v[0], v[1]))
}

/// Checks that a base and an exponent do not meet in bool.
pub fn check_not_bool(operands: &[Promoted]) -> Result<()> {
    check!(result_type(operands, DType::F32) != DType::Bool, NotImplemented, "\"pow\" not implemented for 'Bool'");
    Ok(())
}

/// To a number: the common exponents are products, roots and reciprocals, as on CPU.
fn to_number(call: &mut Call, base: AnyTensor, exponent: Number, out: Out) -> Result<()> {
    check_exponent(&base, exponent)?;
    let float = base.dtype.is_float() || matches!(exponent, Number::Double(_));
    let arguments = [base.into(), Argument::Scalar(exponent)];
    let e = exponent.to_f64();
    let (family, body) = to_exponent(e, float);
    operator_of(call, out, Rule::Promote, family, &arguments, |_, v| body(v[0], v[1]))
}

/// Checks an exponent that is a number.
pub fn check_exponent(base: &Tensor, exponent: Number) -> Result<()> {
    let float = base.dtype.is_float() || matches!(exponent, Number::Double(_));
    check!(float || exponent.to_i64() >= 0, Runtime, "Integers to negative integer powers are not allowed.");
    let promoted = [Promoted::Tensor(base), Promoted::Scalar(exponent)];
    check_fits(exponent, result_type(&promoted, DType::F32))?;
    if matches!(exponent.to_f64(), 0.0 | 1.0) { Ok(()) } else { check_not_bool(&promoted) }
}

/// The kernel of an exponent that is a number, of floats or of integers; its body takes the base and the exponent. Some need no
/// general power.
pub fn to_exponent(exponent: f64, float: bool) -> (&'static str, math::Binary) {
    let both: [(f64, &'static str, math::Binary); 4] = [
        (0.0, "pow_0", |x, _| x.like(1.0)),
        (1.0, "pow_1", |x, _| x),
        (2.0, "pow_2", |x, _| x * x),
        (3.0, "pow_3", |x, _| x * x * x),
    ];
    let floats: [(f64, &'static str, math::Binary); 4] = [
        (0.5, "pow_half", |x, _| math::sqrt(x)),
        (-0.5, "pow_minus_half", |x, _| math::rsqrt(x)),
        (-1.0, "pow_minus_1", |x, _| math::reciprocal(x)),
        (-2.0, "pow_minus_2", |x, _| math::reciprocal(math::mul(x, x))),
    ];
    let mut known = both.into_iter().chain(floats.into_iter().filter(|_| float));
    if let Some((_, family, body)) = known.find(|(e, ..)| *e == exponent) {
        return (family, body);
    }
    if float && is_large_and_odd(exponent) {
        return ("pow_odd", |x, e| copysign(math::pow(math::special::magnitude(x), e), x));
    }
    ("pow", power)
}

/// Whether an exponent is an odd integer that float32 has no room for: it would become an even one.
pub fn is_large_and_odd(exponent: f64) -> bool {
    let size = exponent.abs();
    (2f64.powi(24)..2f64.powi(53)).contains(&size) && size % 2.0 == 1.0
}

/// `base ^ exponent`
pub fn power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    if base.scalar().is_float() { math::pow(base, exponent) } else { integer_power(base, exponent) }
}

/// [`power`] with an exponent that is a number: of 0.5 and -0.5 the root, which differs from the power at -0.0 and -infinity.
pub fn power_or_root<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let general = power(base, exponent);
    if !base.scalar().is_float() {
        return general;
    }
    let root = exponent.lt(0).select(math::rsqrt(base), math::sqrt(base));
    exponent.abs().eq(0.5).select(root, general)
}

/// By squaring, modulo the integer's width. A negative exponent yields 0, except of 1 and -1.
fn integer_power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let b = base.builder();
    if base.scalar() == ScalarType::Bool {
        return base | !exponent;
    }
    let (result, square, left) = (b.var(base.like(1.0)), b.var(base), b.var(exponent));
    b.while_(
        || left.get().gt(0),
        || {
            b.if_((left.get() & 1).ne(0), || result.set(result.get() * square.get()));
            square.set(square.get() * square.get());
            left.set(left.get() >> 1);
        },
    );
    if !base.scalar().is_signed() {
        return result.get();
    }
    let one = base.like(1.0);
    let sign = (exponent & 1).ne(0).select(-one, one);
    let inverse = base.eq(1).select(one, base.eq(-1).select(sign, 0));
    exponent.lt(0).select(inverse, result.get())
}
