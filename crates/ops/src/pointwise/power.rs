//! Powers of tensors and numbers.

use crate::check;
use crate::operator::call::{Arg, Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, Rule, Slot, operator_of};
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::{DType, Scalar, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(tensor, "aten::pow.Tensor_Tensor", "aten::pow_.Tensor", "aten::pow.Tensor_Tensor_out" @ 2),
    &overloads!(to_number, "aten::pow.Tensor_Scalar", "aten::pow_.Scalar", "aten::pow.Tensor_Scalar_out" @ 2),
    &[op("aten::pow.Scalar", |c| of_number(c, Out::New)), op("aten::pow.Scalar_out", |c| of_number(c, Out::Arg(2)))],
];

/// `pow(self, exponent)` of two tensors
fn tensor(call: &mut Call, out: Out) -> Result<()> {
    let (base, exponent) = (call.any_tensor(0)?, call.any_tensor(1)?);
    check_not_bool(&[Promoted::Tensor(base), Promoted::Tensor(exponent)])?;
    operator_of(call, out, Rule::Promote, "pow", &[Slot::Tensor(0), Slot::Tensor(1)], |_, v| power(v[0], v[1]))
}

fn check_not_bool(operands: &[Promoted]) -> Result<()> {
    check!(result_type(operands, DType::F32) != DType::Bool, NotImplemented, "\"pow\" not implemented for 'Bool'");
    Ok(())
}

/// `pow(self, exponent)` to a number: the common exponents are products, roots and reciprocals, as on CPU.
fn to_number(call: &mut Call, out: Out) -> Result<()> {
    let exponent = call.scalar(1)?;
    let base = call.any_tensor(0)?;
    let float = base.dtype.is_float() || matches!(exponent, Number::Double(_));
    check!(float || exponent.to_i64() >= 0, Runtime, "Integers to negative integer powers are not allowed.");
    let slots = [Slot::Tensor(0), Slot::Scalar(exponent)];
    if !float {
        let common = result_type(&[Promoted::Tensor(base), Promoted::Scalar(exponent)], DType::F32);
        crate::movement::copy::check_fits(exponent, common)?;
    }
    let e = exponent.to_f64();
    if e != 0.0 && e != 1.0 {
        check_not_bool(&[Promoted::Tensor(base), Promoted::Scalar(exponent)])?;
    }
    if let Some((family, body)) = special(e, float) {
        return operator_of(call, out, Rule::Promote, family, &slots, |_, v| body(v[0]));
    }
    operator_of(call, out, Rule::Promote, "pow", &slots, |_, v| power(v[0], v[1]))
}

/// The kernel of an exponent that needs no general power, of floats or of integers.
pub fn special(exponent: f64, float: bool) -> Option<(&'static str, math::Unary)> {
    let both: [(f64, &'static str, math::Unary); 4] = [
        (0.0, "pow_0", |x| x.like(1.0)),
        (1.0, "pow_1", |x| x),
        (2.0, "pow_2", |x| x * x),
        (3.0, "pow_3", |x| x * x * x),
    ];
    let floats: [(f64, &'static str, math::Unary); 4] = [
        (0.5, "pow_half", |x| math::sqrt(x)),
        (-0.5, "pow_minus_half", |x| math::rsqrt(x)),
        (-1.0, "pow_minus_1", |x| math::reciprocal(x)),
        (-2.0, "pow_minus_2", |x| math::reciprocal(x * x)),
    ];
    let known = both.into_iter().chain(floats.into_iter().filter(|_| float));
    known.into_iter().find(|(e, ..)| *e == exponent).map(|(_, family, body)| (family, body))
}

/// `pow(self, exponent)` of a number
fn of_number(call: &mut Call, out: Out) -> Result<()> {
    let Arg::Scalar(base) = call.args[0] else { return tensor(call, out) };
    check_not_bool(&[Promoted::Scalar(base), Promoted::Tensor(call.any_tensor(1)?)])?;
    operator_of(call, out, Rule::Promote, "pow", &[Slot::Scalar(base), Slot::Tensor(1)], |_, v| power(v[0], v[1]))
}

/// `base ^ exponent`
pub fn power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    if base.scalar().is_float() { math::pow(base, exponent) } else { integer_power(base, exponent) }
}

/// By squaring, modulo the integer's width. A negative exponent yields 0, except of 1 and -1.
fn integer_power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let b = base.builder();
    if base.scalar() == Scalar::Bool {
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
