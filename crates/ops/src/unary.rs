//! Elementary functions of one tensor.

use crate::call::Call;
use crate::check;
use crate::error::Result;
use crate::pointwise::{Out, Rule, operator};
use crate::table::{Operator, op};
use dml_kernel::{DType, Scalar, Value, math};

/// `name Rule body;` for each function: its functional, in-place and `out=` overloads.
macro_rules! unary {
    ($($name:literal $rule:ident |$x:ident| $body:expr;)*) => {
        /// This family's overloads.
        pub const OPERATORS: &[&[Operator]] = &[$(
            &[
                op(concat!("aten::", $name), |c| operator(c, Out::New, Rule::$rule, $name, &[0], &[], |_, v| { let $x = v[0]; $body })),
                op(concat!("aten::", $name, "_"), |c| operator(c, Out::InPlace, Rule::$rule, $name, &[0], &[], |_, v| { let $x = v[0]; $body })),
                op(concat!("aten::", $name, ".out"), |c| operator(c, Out::Arg(1), Rule::$rule, $name, &[0], &[], |_, v| { let $x = v[0]; $body })),
            ],
        )*
        &[
            op("aten::neg", |c| neg(c, Out::New)),
            op("aten::neg_", |c| neg(c, Out::InPlace)),
            op("aten::neg.out", |c| neg(c, Out::Arg(1))),
            op("aten::isnan", |c| operator(c, Out::New, Rule::Bool, "isnan", &[0], &[], |_, v| v[0].is_nan())),
            op("aten::isinf", |c| operator(c, Out::New, Rule::Bool, "isinf", &[0], &[], |_, v| v[0].is_inf())),
        ]];
    };
}

unary! {
    "exp" Float |x| math::exp(x);
    "exp2" Float |x| math::exp2(x);
    "expm1" Float |x| math::expm1(x);
    "log" Float |x| math::log(x);
    "log1p" Float |x| math::log1p(x);
    "log2" Float |x| math::log2(x);
    "log10" Float |x| math::log10(x);
    "sqrt" Float |x| math::sqrt(x);
    "rsqrt" Float |x| math::rsqrt(x);
    "reciprocal" Float |x| math::reciprocal(x);
    "sin" Float |x| math::sin(x);
    "cos" Float |x| math::cos(x);
    "tan" Float |x| math::tan(x);
    "asin" Float |x| math::asin(x);
    "acos" Float |x| math::acos(x);
    "atan" Float |x| math::atan(x);
    "sinh" Float |x| math::sinh(x);
    "cosh" Float |x| math::cosh(x);
    "tanh" Float |x| math::tanh(x);
    "sigmoid" Float |x| math::sigmoid(x);
    "erf" Float |x| math::erf(x);
    "erfc" Float |x| math::erfc(x);
    "abs" Promote |x| abs(x);
    "sign" Promote |x| sign(x);
    "sgn" Promote |x| sign(x);
    "floor" Promote |x| rounded(x, Value::floor);
    "ceil" Promote |x| rounded(x, Value::ceil);
    "trunc" Promote |x| rounded(x, Value::trunc);
    "round" Promote |x| rounded(x, Value::round);
    "frac" Promote |x| x - x.trunc();
    "logical_not" Bool |x| !x.cast(Scalar::Bool);
    "bitwise_not" Promote |x| !x;
    "isposinf" Bool |x| x.is_inf() & x.gt(0);
    "isneginf" Bool |x| x.is_inf() & x.lt(0);
    "signbit" Bool |x| sign_bit(x);
}

/// `neg(self)`
fn neg(call: &mut Call, out: Out) -> Result<()> {
    check!(
        call.any_tensor(0)?.dtype != DType::Bool,
        Runtime,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the \
         `~` or `logical_not()` operator instead."
    );
    operator(call, out, Rule::Promote, "neg", &[0], &[], |_, v| -v[0])
}

/// Absolute value; of a bool, itself.
pub fn abs(x: Value<'_>) -> Value<'_> {
    if x.scalar() == Scalar::Bool { x } else { x.abs() }
}

/// -1, 0 or 1; NaN yields 0 as on CPU.
pub fn sign(x: Value<'_>) -> Value<'_> {
    if x.scalar() == Scalar::Bool {
        return x;
    }
    x.gt(0).select(x.like(1.0), x.lt(0).select(x.like(-1.0), 0))
}

/// Rounding of a float; an integer is its own.
fn rounded<'b>(x: Value<'b>, how: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { how(x) } else { x }
}

/// Whether the sign bit is set, that of -0 and NaN included.
fn sign_bit(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        Scalar::Bool => x.builder().bool(false),
        Scalar::F32 => x.bitcast(Scalar::I32).lt(0),
        Scalar::F64 => x.bitcast(Scalar::I64).lt(0),
        _ => x.lt(0),
    }
}
