//! Division that rounds, and remainders.

use crate::check;
use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, Rule, Slot, dividing_operator, input, operator};
use crate::pointwise::kernel::Input;
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::{DType, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(div, "aten::div.Tensor", "aten::div_.Tensor", "aten::div.out" @ 2),
    &overloads!(div_mode, "aten::div.Tensor_mode", "aten::div_.Tensor_mode", "aten::div.out_mode" @ 3),
    &overloads!(floor_divide, "aten::floor_divide", "aten::floor_divide_.Tensor", "aten::floor_divide.out" @ 2),
    &overloads!(remainder, "aten::remainder.Tensor", "aten::remainder_.Tensor", "aten::remainder.Tensor_out" @ 2),
    &overloads!(remainder, "aten::remainder.Scalar", "aten::remainder_.Scalar", "aten::remainder.Scalar_out" @ 2),
    &[op("aten::remainder.Scalar_Tensor", |c| remainder(c, Out::New))],
    &overloads!(fmod, "aten::fmod.Tensor", "aten::fmod_.Tensor", "aten::fmod.Tensor_out" @ 2),
    &overloads!(fmod, "aten::fmod.Scalar", "aten::fmod_.Scalar", "aten::fmod.Scalar_out" @ 2),
];

/// `div(self, other)`: true division; integers become floats.
fn div(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "div", &[0, 1], &[], |_, v| v[0] / v[1])
}

/// `div(self, other, rounding_mode)`
fn div_mode(call: &mut Call, out: Out) -> Result<()> {
    match call.opt_str(2)? {
        None => div(call, out),
        Some("floor") => floor_divide(call, out),
        Some("trunc") => {
            let slots = operands(call, "div_trunc")?;
            dividing_operator(call, out, "div_trunc", &slots, |_, v| quotient(v[0], v[1]))
        }
        Some(mode) => {
            check!(
                false,
                Runtime,
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
            );
            Ok(())
        }
    }
}

/// `floor_divide(self, other)`
fn floor_divide(call: &mut Call, out: Out) -> Result<()> {
    let slots = operands(call, "div_floor")?;
    dividing_operator(call, out, "div_floor", &slots, |_, v| floor_quotient(v[0], v[1]))
}

/// `remainder(self, other)`: with the sign of the divisor, as Python's `%`.
fn remainder(call: &mut Call, out: Out) -> Result<()> {
    let slots = operands(call, "remainder")?;
    dividing_operator(call, out, "remainder", &slots, |_, v| modulo(v[0], v[1]))
}

/// `fmod(self, other)`: with the sign of the dividend, as C's `%`.
fn fmod(call: &mut Call, out: Out) -> Result<()> {
    let slots = operands(call, "fmod")?;
    dividing_operator(call, out, "fmod", &slots, |_, v| rest(v[0], v[1]))
}

/// Arguments 0 and 1, each a tensor or a number. An integer divisor that the host knows to be zero is an error at once.
fn operands(call: &Call, name: &str) -> Result<[Slot; 2]> {
    let slot = |i: usize| -> Result<(Slot, Option<crate::Scalar>)> {
        Ok(match &call.args[i] {
            Arg::Scalar(s) => (Slot::Scalar(*s), Some(*s)),
            _ => match input(call, i)? {
                Input::Number(x, _) => (Slot::Tensor(i), Some(x)),
                Input::Tensor(_) => (Slot::Tensor(i), None),
            },
        })
    };
    let ((dividend, _), (divisor, known)) = (slot(0)?, slot(1)?);
    let promoted = |i: usize| -> Result<Promoted> {
        Ok(match &call.args[i] {
            Arg::Scalar(s) => Promoted::Scalar(*s),
            _ => Promoted::Tensor(call.any_tensor(i)?),
        })
    };
    let common = result_type(&[promoted(0)?, promoted(1)?], call.host.default_dtype());
    check!(common != DType::Bool, NotImplemented, "\"{name}\" not implemented for 'Bool'");
    if let Some(crate::Scalar::Int(0) | crate::Scalar::Bool(false)) = known {
        check!(common.is_float(), Runtime, "ZeroDivisionError");
    }
    Ok([dividend, divisor])
}

/// An integer divisor that no driver divides by wrongly: 1 in place of 0, and of -1, whose quotient is a negation.
fn safe<'b>(divisor: Value<'b>) -> Value<'b> {
    let zero = divisor.eq(0);
    let unsafe_ = if divisor.scalar().is_signed() { zero | divisor.eq(-1) } else { zero };
    unsafe_.select(divisor.like(1.0), divisor)
}

/// `trunc(a / b)`; integers by zero yield 0.
fn quotient<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => (a / b).trunc(),
        s => {
            let plain = a / safe(b);
            let quotient = if s.is_signed() { b.eq(-1).select(-a, plain) } else { plain };
            b.eq(0).select(a.like(0.0), quotient)
        }
    }
}

/// `a - b * trunc(a / b)`, exact. Not by a remainder instruction: Vulkan leaves it undefined for negative numbers.
fn rest<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => math::fmod(a, b),
        _ => b.eq(0).select(a.like(0.0), a - b * quotient(a, b)),
    }
}

/// Whether a remainder's sign is not the divisor's, and it is not zero.
fn crosses<'b>(rest: Value<'b>, b: Value<'b>) -> Value<'b> {
    rest.ne(0) & (rest.lt(0) ^ b.lt(0))
}

/// The remainder with the divisor's sign.
fn modulo<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let rest = rest(a, b);
    crosses(rest, b).select(rest + b, rest)
}

/// The quotient rounded down. For floats by Python's algorithm, which CPU follows: `a - mod` is a multiple of `b`.
fn floor_quotient<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => {
            let modulus = math::fmod(a, b);
            let exact = (a - modulus) / b;
            let exact = crosses(modulus, b).select(exact - 1.0, exact);
            let floor = exact.floor();
            let floor = (exact - floor).gt(0.5).select(floor + 1.0, floor);
            let plain = a / b;
            let zero = crate::pointwise::binary::copysign(a.like(0.0), plain);
            b.eq(0).select(plain, exact.eq(0).select(zero, floor))
        }
        _ => {
            let (q, r) = (quotient(a, b), rest(a, b));
            crosses(r, b).select(q - 1, q)
        }
    }
}
