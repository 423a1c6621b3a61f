//! Elementary functions of one tensor.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out, Rule, operator};
use dml_kernel::{DType, Scalar, Value, math};

/// `name Rule Domain body;` for each function: its functional, in-place and `out=` overloads.
macro_rules! unary {
    ($($name:literal $rule:ident $domain:ident |$x:ident| $body:expr;)*) => {
        /// This family's overloads.
        pub const OPERATORS: &[&[Operator]] = &[$(
            &[
                op(concat!("aten::", $name), |c| run(c, Out::New, Rule::$rule, Domain::$domain, $name, |$x| $body)),
                op(concat!("aten::", $name, "_"), |c| run(c, Out::InPlace, Rule::$rule, Domain::$domain, $name, |$x| $body)),
                op(concat!("aten::", $name, ".out"), |c| run(c, Out::Arg(1), Rule::$rule, Domain::$domain, $name, |$x| $body)),
            ],
        )*
        &[
            op("aten::neg", |c| neg(c, Out::New)),
            op("aten::neg_", |c| neg(c, Out::InPlace)),
            op("aten::neg.out", |c| neg(c, Out::Arg(1))),
            op("aten::angle", |c| run(c, Out::New, Rule::Float, Domain::Any, "angle", angle)),
            op("aten::angle.out", |c| run(c, Out::Arg(1), Rule::Float, Domain::Any, "angle", angle)),
            op("aten::isnan", |c| run(c, Out::New, Rule::Bool, Domain::Any, "isnan", |x| x.is_nan())),
            op("aten::isinf", |c| run(c, Out::New, Rule::Bool, Domain::Any, "isinf", |x| x.is_inf())),
        ]];
    };
}

unary! {
    "exp" Float Any |x| math::exp(x);
    "exp2" Float Any |x| math::exp2(x);
    "expm1" Float Any |x| math::expm1(x);
    "log" Float Any |x| math::log(x);
    "log1p" Float Any |x| math::log1p(x);
    "log2" Float Any |x| math::log2(x);
    "log10" Float Any |x| math::log10(x);
    "sqrt" Float Any |x| math::sqrt(x);
    "rsqrt" Float Any |x| math::rsqrt(x);
    "reciprocal" Float Any |x| math::reciprocal(x);
    "sin" Float Any |x| math::sin(x);
    "cos" Float Any |x| math::cos(x);
    "tan" Float Any |x| math::tan(x);
    "asin" Float Any |x| math::asin(x);
    "acos" Float Any |x| math::acos(x);
    "atan" Float Any |x| math::atan(x);
    "sinh" Float Any |x| math::sinh(x);
    "cosh" Float Any |x| math::cosh(x);
    "tanh" Float Any |x| math::tanh(x);
    "sigmoid" Float Any |x| math::sigmoid(x);
    "erf" Float Any |x| math::erf(x);
    "erfc" Float Any |x| math::erfc(x);
    "abs" Promote Number |x| abs(x);
    "sign" Promote Any |x| sign(x);
    "sgn" Promote Any |x| sign(x);
    "floor" Promote Number |x| rounded(x, Value::floor);
    "ceil" Promote Number |x| rounded(x, Value::ceil);
    "trunc" Promote Number |x| rounded(x, Value::trunc);
    "round" Promote Number |x| rounded(x, Value::round);
    "frac" Promote Float |x| x - x.trunc();
    "logical_not" Bool Any |x| !x.cast(Scalar::Bool);
    "bitwise_not" Promote Integral |x| !x;
    "isposinf" Bool Any |x| x.is_inf() & x.gt(0);
    "isneginf" Bool Any |x| x.is_inf() & x.lt(0);
    "signbit" Bool Any |x| sign_bit(x);
}

/// The dtypes an operator takes, where CPU refuses some.
#[derive(Copy, Clone)]
enum Domain {
    Any,
    /// No bools.
    Number,
    Float,
    /// Integers and bools.
    Integral,
}

fn run(
    call: &mut Call,
    out: Out,
    rule: Rule,
    domain: Domain,
    name: &'static str,
    body: impl for<'b> Fn(Value<'b>) -> Value<'b>,
) -> Result<()> {
    match domain {
        Domain::Any => {}
        Domain::Number => elementwise::check_not_bool(call, 0, name)?,
        Domain::Float => elementwise::check_float(call, 0, name)?,
        Domain::Integral => elementwise::check_integral(call, 0, name)?,
    }
    operator(call, out, rule, name, &[0], &[], |_, v| body(v[0]))
}

/// `neg(self)`
fn neg(call: &mut Call, out: Out) -> Result<()> {
    check!(
        call.any_tensor(0)?.dtype != DType::Bool,
        Dtype,
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

/// Angle of a real number in the complex plane: pi left of zero, 0 elsewhere, NaN of NaN.
fn angle(x: Value<'_>) -> Value<'_> {
    x.is_nan().select(x, x.lt(0).select(x.like(std::f64::consts::PI), 0))
}

/// Rounding of a float; an integer is its own.
pub fn rounded<'b>(x: Value<'b>, how: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
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
