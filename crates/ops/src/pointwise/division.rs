//! Division that rounds, and remainders.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar};
use crate::operator::error::{Error, Result};
use crate::operator::fault::Refusal;
use crate::pointwise::binary::copysign;
use crate::pointwise::kernel::{Domain, Guard, Operand};
use crate::pointwise::operator::{Argument, Rule, guarded_operator, operand_of, operator_of};
use crate::tensor::promote::result_type;
use crate::{check, operators};
use dml_kernel::{DType, Value, convert, math};

operators! {
    div(self, other, out) {
        "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    div_mode(self, other, rounding_mode, out) {
        "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
        "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)",
    }
    floor_divide(self, other, out) {
        "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
        "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    remainder(self, other, out) {
        "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    }
    fmod(self, other, out) {
        "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::fmod.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// True division; integers become floats.
fn div(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, Rule::Float, "div", &[x.into(), Argument::Factor(y)], |_, v| v[0] / v[1])
}

fn div_mode(call: &mut Call, x: AnyTensor, y: AnyTensor, mode: Option<&str>, out: Out) -> Result<()> {
    match mode {
        None => div(call, x, y, out),
        Some("floor") => floor_divide(call, x, y, out),
        Some("trunc") => {
            let (x, y) = (TensorOrScalar::Tensor(x), TensorOrScalar::Tensor(y));
            divide(call, x, y, out, "div_trunc", Body::Quotient(quotient))
        }
        Some(mode) => Err(Error::Runtime(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
        ))),
    }
}

fn floor_divide(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    divide(call, TensorOrScalar::Tensor(x), TensorOrScalar::Tensor(y), out, "div_floor", Body::Quotient(floor_quotient))
}

/// With the sign of the divisor, as Python's `%`.
fn remainder(call: &mut Call, x: TensorOrScalar, y: TensorOrScalar, out: Out) -> Result<()> {
    divide(call, x, y, out, "remainder", Body::Remainder(modulo))
}

/// With the sign of the dividend, as C's `%`.
fn fmod(call: &mut Call, x: TensorOrScalar, y: TensorOrScalar, out: Out) -> Result<()> {
    divide(call, x, y, out, "fmod", Body::Remainder(rest))
}

/// What is computed of a dividend and a divisor.
#[derive(Copy, Clone)]
enum Body {
    /// A quotient that is an integer; its steps are rounded.
    Quotient(for<'b> fn(Value<'b>, Value<'b>, Precision) -> Value<'b>),
    /// A remainder, which is exact.
    Remainder(math::Binary),
}

/// The 16-bit float dtype to which something is rounded, if any.
#[derive(Copy, Clone)]
struct Precision(Option<DType>);

impl Precision {
    fn round(self, x: Value<'_>) -> Value<'_> {
        self.0.map_or(x, |dtype| convert(x, dtype))
    }

    /// This one where `holds`, else none.
    fn only(self, holds: bool) -> Precision {
        Precision(self.0.filter(|_| holds))
    }
}

/// The second operand, which the CPU does not divide integers by where it is zero.
const DIVISOR: &[Guard] =
    &[Guard { operand: 1, domain: Domain::Divisor, refusal: Refusal::Value("ZeroDivisionError") }];

/// An operator whose second operand divides. An integer divisor that the host knows to be zero is an error at once.
fn divide(
    call: &mut Call,
    x: TensorOrScalar,
    y: TensorOrScalar,
    out: Out,
    name: &'static str,
    body: Body,
) -> Result<()> {
    let (dividend, divisor) = (number(call, x)?, number(call, y)?);
    let common = result_type(&[x.into(), y.into()], call.host.default_dtype());
    check!(common != DType::Bool, NotImplemented, "\"{name}\" not implemented for 'Bool'");
    if let Some(Scalar::Int(0) | Scalar::Bool(false)) = divisor {
        let empty = matches!(x, TensorOrScalar::Tensor(x) if x.numel() == 0);
        check!(common.is_float() || empty, Runtime, "ZeroDivisionError");
    }
    // As on the CPU: in 16 bits numbers are rounded before, and every step of a quotient is, but if one number divides all:
    // it is taken as it was given, and only the result is rounded.
    let half = Precision(matches!(common, DType::F16 | DType::BF16).then_some(common));
    let one_divides = divisor.is_some() || matches!(y, TensorOrScalar::Tensor(y) if y.numel() == 1);
    let steps = half.only(!one_divides);
    guarded_operator(call, out, Rule::Promote, name, DIVISOR, steps.0.is_some(), &[x.into(), y.into()], |_, v| {
        let a = half.only(dividend.is_some()).round(v[0]);
        match body {
            Body::Quotient(body) => body(a, v[1], steps),
            Body::Remainder(body) => body(a, half.only(divisor.is_some()).round(v[1])),
        }
    })
}

/// The operand, if it is one number that the host knows.
fn number(call: &Call, operand: TensorOrScalar) -> Result<Option<Scalar>> {
    Ok(match operand {
        TensorOrScalar::Scalar(s) => Some(s),
        TensorOrScalar::Tensor(AnyTensor(t)) => match operand_of(call, t)? {
            Operand::Number(s) => Some(s),
            Operand::Tensor(_) => None,
        },
    })
}

/// An integer divisor that no driver divides by wrongly: 1 in place of 0, and of -1, whose quotient is a negation.
fn safe<'b>(divisor: Value<'b>) -> Value<'b> {
    let zero = divisor.eq(0);
    let unsafe_ = if divisor.scalar().is_signed() { zero | divisor.eq(-1) } else { zero };
    unsafe_.select(divisor.like(1.0), divisor)
}

/// `trunc(a / b)`; integers by zero yield 0.
fn quotient<'b>(a: Value<'b>, b: Value<'b>, steps: Precision) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => steps.round(a / b).trunc(),
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
        _ => b.eq(0).select(a.like(0.0), a - b * quotient(a, b, Precision(None))),
    }
}

/// Whether a remainder's sign is not the divisor's, and it is not zero.
fn crosses<'b>(rest: Value<'b>, b: Value<'b>) -> Value<'b> {
    if rest.scalar().is_float() {
        let divisor = b.is_below_zero();
        return (rest.is_above_zero() & divisor) | (rest.is_below_zero() & !divisor);
    }
    rest.ne(0) & (rest.lt(0) ^ b.lt(0))
}

/// The remainder with the divisor's sign.
fn modulo<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let rest = rest(a, b);
    let other = if a.scalar().is_float() { math::special::sum(rest, b) } else { rest + b };
    crosses(rest, b).select(other, rest)
}

/// The quotient rounded down. For floats by Python's algorithm, which CPU follows: `a - mod` is a multiple of `b`.
fn floor_quotient<'b>(a: Value<'b>, b: Value<'b>, steps: Precision) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => {
            let modulus = math::fmod(a, b);
            let exact = steps.round(steps.round(math::special::sum(a, -modulus)) / b);
            let exact = crosses(modulus, b).select(steps.round(exact - 1.0), exact);
            let floor = exact.floor();
            let floor = (exact - floor).gt(0.5).select(floor + 1.0, floor);
            let plain = a / b;
            let zero = copysign(a.like(0.0), plain);
            b.is_zero().select(plain, exact.eq(0).select(zero, floor))
        }
        _ => {
            let (q, r) = (quotient(a, b, steps), rest(a, b));
            crosses(r, b).select(q - 1, q)
        }
    }
}
