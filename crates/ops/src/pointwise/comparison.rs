//! Comparisons, logic and bit operations of two operands, minimum and maximum.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out, Rule, Slot, operator, operator_of};
use dml_kernel::{Scalar, Value};

/// `name body;` for each comparison: functional, in-place and `out=`, against a tensor and against a number.
macro_rules! comparisons {
    ($($name:literal |$a:ident, $b:ident| $body:expr;)*) => {
        /// Comparisons with a tensor and with a number.
        pub const COMPARISONS: &[&[Operator]] = &[$(
            &[
                op(concat!("aten::", $name, ".Tensor"), |c| operator(c, Out::New, Rule::Bool, $name, &[0, 1], &[], |_, v| { let ($a, $b) = (v[0], v[1]); $body })),
                op(concat!("aten::", $name, "_.Tensor"), |c| operator(c, Out::InPlace, Rule::Bool, $name, &[0, 1], &[], |_, v| { let ($a, $b) = (v[0], v[1]); $body })),
                op(concat!("aten::", $name, ".Tensor_out"), |c| operator(c, Out::Arg(2), Rule::Bool, $name, &[0, 1], &[], |_, v| { let ($a, $b) = (v[0], v[1]); $body })),
                op(concat!("aten::", $name, ".Scalar"), |c| with_number(c, Out::New, $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
                op(concat!("aten::", $name, "_.Scalar"), |c| with_number(c, Out::InPlace, $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
                op(concat!("aten::", $name, ".Scalar_out"), |c| with_number(c, Out::Arg(2), $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
            ],
        )*];
    };
}

/// `name [new in-place out] Rule body;` for each operator of two tensors.
macro_rules! binaries {
    ($($name:literal [$new:literal $inplace:literal $out:literal] $rule:ident |$a:ident, $b:ident| $body:expr;)*) => {
        /// Logic, bits, minimum and maximum.
        pub const BINARIES: &[&[Operator]] = &[$(
            &[
                op($new, |c| binary(c, Out::New, Rule::$rule, $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
                op($inplace, |c| binary(c, Out::InPlace, Rule::$rule, $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
                op($out, |c| binary(c, Out::Arg(2), Rule::$rule, $name, |v| { let ($a, $b) = (v[0], v[1]); $body })),
            ],
        )*];
    };
}

comparisons! {
    "eq" |a, b| a.eq(b);
    "ne" |a, b| a.ne(b);
    "lt" |a, b| ordered(a, b, Value::lt);
    "le" |a, b| ordered(a, b, Value::le);
    "gt" |a, b| ordered(a, b, Value::gt);
    "ge" |a, b| ordered(a, b, Value::ge);
}

binaries! {
    "logical_and" ["aten::logical_and" "aten::logical_and_" "aten::logical_and.out"] Bool
        |a, b| a.cast(Scalar::Bool) & b.cast(Scalar::Bool);
    "logical_or" ["aten::logical_or" "aten::logical_or_" "aten::logical_or.out"] Bool
        |a, b| a.cast(Scalar::Bool) | b.cast(Scalar::Bool);
    "logical_xor" ["aten::logical_xor" "aten::logical_xor_" "aten::logical_xor.out"] Bool
        |a, b| a.cast(Scalar::Bool) ^ b.cast(Scalar::Bool);
    "bitwise_and" ["aten::bitwise_and.Tensor" "aten::bitwise_and_.Tensor" "aten::bitwise_and.Tensor_out"] Promote
        |a, b| a & b;
    "bitwise_or" ["aten::bitwise_or.Tensor" "aten::bitwise_or_.Tensor" "aten::bitwise_or.Tensor_out"] Promote
        |a, b| a | b;
    "bitwise_xor" ["aten::bitwise_xor.Tensor" "aten::bitwise_xor_.Tensor" "aten::bitwise_xor.Tensor_out"] Promote
        |a, b| a ^ b;
    "maximum" ["aten::maximum" "aten::maximum_" "aten::maximum.out"] Promote |a, b| maximum(a, b);
    "minimum" ["aten::minimum" "aten::minimum_" "aten::minimum.out"] Promote |a, b| minimum(a, b);
    "fmax" ["aten::fmax" "aten::fmax_" "aten::fmax.out"] Promote
        |a, b| a.is_nan().select(b, b.is_nan().select(a, maximum(a, b)));
    "fmin" ["aten::fmin" "aten::fmin_" "aten::fmin.out"] Promote
        |a, b| a.is_nan().select(b, b.is_nan().select(a, minimum(a, b)));
}

fn binary(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    body: impl for<'b> Fn(&[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    if family.starts_with("bitwise") {
        elementwise::check_integral(call, 0, family)?;
        elementwise::check_integral(call, 1, family)?;
    }
    operator(call, out, rule, family, &[0, 1], &[], |_, v| body(v))
}

fn with_number(
    call: &mut Call,
    out: Out,
    family: &'static str,
    body: impl for<'b> Fn(&[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    let slots = [Slot::Tensor(0), Slot::Scalar(call.scalar(1)?)];
    operator_of(call, out, Rule::Bool, family, &slots, |_, v| body(v))
}

/// An order comparison; bools count as 0 and 1.
fn ordered<'b>(a: Value<'b>, b: Value<'b>, how: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Value<'b> {
    if a.scalar() == Scalar::Bool { how(a.cast(Scalar::I32), b.cast(Scalar::I32)) } else { how(a, b) }
}

/// The larger of two; NaN if either is.
pub fn maximum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        Scalar::Bool => a | b,
        s if s.is_float() => (a.is_nan() | a.gt(b)).select(a, b),
        _ => a.max(b),
    }
}

/// The smaller of two; NaN if either is.
pub fn minimum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        Scalar::Bool => a & b,
        s if s.is_float() => (a.is_nan() | a.lt(b)).select(a, b),
        _ => a.min(b),
    }
}
