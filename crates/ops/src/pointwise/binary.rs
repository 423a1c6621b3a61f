//! Functions of two tensors beside arithmetic: angles, lengths, logarithms, signs, bits.

use crate::check;
use crate::operator::call::{Arg, Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, Rule, Slot, operator, operator_of};
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::{Scalar, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(atan2, "aten::atan2", "aten::atan2_", "aten::atan2.out" @ 2),
    &overloads!(hypot, "aten::hypot", "aten::hypot_", "aten::hypot.out" @ 2),
    &overloads!(xlogy, "aten::xlogy.Tensor", "aten::xlogy_.Tensor", "aten::xlogy.OutTensor" @ 2),
    &overloads!(sign_of, "aten::copysign.Tensor", "aten::copysign_.Tensor", "aten::copysign.out" @ 2),
    &overloads!(heaviside, "aten::heaviside", "aten::heaviside_", "aten::heaviside.out" @ 2),
    &overloads!(gcd, "aten::gcd", "aten::gcd_", "aten::gcd.out" @ 2),
    &overloads!(lcm, "aten::lcm", "aten::lcm_", "aten::lcm.out" @ 2),
    &[
        op("aten::special_xlog1py", |c| xlog1py(c, Out::New)),
        op("aten::special_xlog1py.out", |c| xlog1py(c, Out::Arg(2))),
        op("aten::logaddexp", |c| log_add_exp(c, Out::New)),
        op("aten::logaddexp.out", |c| log_add_exp(c, Out::Arg(2))),
        op("aten::logaddexp2", |c| log_add_exp2(c, Out::New)),
        op("aten::logaddexp2.out", |c| log_add_exp2(c, Out::Arg(2))),
    ],
    &overloads!(
        left_shift,
        "aten::bitwise_left_shift.Tensor",
        "aten::bitwise_left_shift_.Tensor",
        "aten::bitwise_left_shift.Tensor_out" @ 2
    ),
    &overloads!(
        right_shift,
        "aten::bitwise_right_shift.Tensor",
        "aten::bitwise_right_shift_.Tensor",
        "aten::bitwise_right_shift.Tensor_out" @ 2
    ),
    &[
        op("aten::__lshift__.Tensor", |c| left_shift(c, Out::New)),
        op("aten::__lshift__.Scalar", |c| left_shift(c, Out::New)),
        op("aten::__ilshift__.Tensor", |c| left_shift(c, Out::InPlace)),
        op("aten::__ilshift__.Scalar", |c| left_shift(c, Out::InPlace)),
        op("aten::__rshift__.Tensor", |c| right_shift(c, Out::New)),
        op("aten::__rshift__.Scalar", |c| right_shift(c, Out::New)),
        op("aten::__irshift__.Tensor", |c| right_shift(c, Out::InPlace)),
        op("aten::__irshift__.Scalar", |c| right_shift(c, Out::InPlace)),
    ],
];

fn atan2(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "atan2", &[0, 1], &[], |_, v| math::atan2(v[0], v[1]))
}

/// `hypot(self, other)`: scaled by the larger one, so that squares do not overflow. An infinity wins over NaN.
fn hypot(call: &mut Call, out: Out) -> Result<()> {
    floats_only(call, "hypot")?;
    operator(call, out, Rule::Promote, "hypot", &[0, 1], &[], |_, v| {
        let (a, b) = (v[0].abs(), v[1].abs());
        let (large, small) = (a.gt(b).select(a, b), a.gt(b).select(b, a));
        let ratio = small / large;
        let length = large * math::sqrt(1.0 + ratio * ratio);
        let length = large.eq(0).select(small, length);
        (a.is_inf() | b.is_inf()).select(a.like(f64::INFINITY), length)
    })
}

/// `xlogy(self, other)`: `self * log(other)`, 0 where self is 0 unless other is NaN
fn xlogy(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "xlogy", &[0, 1], &[], |_, v| times_log(v[0], v[1], math::log(v[1])))
}

/// `special_xlog1py(self, other)`
fn xlog1py(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "xlog1py", &[0, 1], &[], |_, v| times_log(v[0], v[1], math::log1p(v[1])))
}

fn times_log<'b>(x: Value<'b>, y: Value<'b>, log: Value<'b>) -> Value<'b> {
    y.is_nan().select(y, x.eq(0).select(x.like(0.0), x * log))
}

/// `copysign(self, other)`
fn sign_of(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "copysign", &[0, 1], &[], |_, v| copysign(v[0], v[1]))
}

/// The magnitude of one float with the sign bit of another.
pub fn copysign<'b>(magnitude: Value<'b>, sign: Value<'b>) -> Value<'b> {
    let bits = magnitude.scalar().unsigned();
    let top = magnitude.builder().int(bits, 1 << (8 * bits.bytes() - 1));
    ((magnitude.bitcast(bits) & !top) | (sign.bitcast(bits) & top)).bitcast(magnitude.scalar())
}

/// `heaviside(self, values)`: 0 below zero, 1 above, `values` at zero
fn heaviside(call: &mut Call, out: Out) -> Result<()> {
    let (a, b) = (call.any_tensor(0)?.dtype, call.any_tensor(1)?.dtype);
    check!(a == b, Runtime, "heaviside is not yet implemented for tensors with different dtypes.");
    operator(call, out, Rule::Promote, "heaviside", &[0, 1], &[], |_, v| {
        if v[0].scalar() == Scalar::Bool {
            return v[0] | v[1];
        }
        v[0].eq(0).select(v[1], v[0].gt(0).select(v[0].like(1.0), 0))
    })
}

/// `logaddexp(self, other)`: `log(e^self + e^other)`
fn log_add_exp(call: &mut Call, out: Out) -> Result<()> {
    floats_only(call, "logaddexp")?;
    operator(call, out, Rule::Promote, "logaddexp", &[0, 1], &[], |_, v| {
        let (m, d) = larger_and_distance(v);
        (v[0].is_inf() & v[0].eq(v[1])).select(v[0], m + math::log1p(math::exp(-d)))
    })
}

/// `logaddexp2(self, other)`: `log2(2^self + 2^other)`
fn log_add_exp2(call: &mut Call, out: Out) -> Result<()> {
    floats_only(call, "logaddexp2")?;
    operator(call, out, Rule::Promote, "logaddexp2", &[0, 1], &[], |_, v| {
        let (m, d) = larger_and_distance(v);
        let log2 = math::log1p(math::exp2(-d)) * std::f64::consts::LOG2_E;
        (v[0].is_inf() & v[0].eq(v[1])).select(v[0], m + log2)
    })
}

fn larger_and_distance<'b>(v: &[Value<'b>]) -> (Value<'b>, Value<'b>) {
    (crate::pointwise::comparison::maximum(v[0], v[1]), (v[0] - v[1]).abs())
}

/// Greatest common divisor, by Euclid.
fn divisor<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let builder = a.builder();
    let (x, y) = (builder.var(a.abs()), builder.var(b.abs()));
    builder.while_(
        || y.get().ne(0),
        || {
            let (now, next) = (x.get(), y.get());
            x.set(next);
            y.set(now - next * (now / next));
        },
    );
    x.get()
}

fn gcd(call: &mut Call, out: Out) -> Result<()> {
    integers_only(call, "gcd")?;
    operator(call, out, Rule::Promote, "gcd", &[0, 1], &[], |_, v| divisor(v[0], v[1]))
}

fn lcm(call: &mut Call, out: Out) -> Result<()> {
    integers_only(call, "lcm")?;
    operator(call, out, Rule::Promote, "lcm", &[0, 1], &[], |_, v| {
        let g = divisor(v[0], v[1]);
        let part = v[0] / g.eq(0).select(g.like(1.0), g);
        g.eq(0).select(g, (part * v[1]).abs())
    })
}

/// Shifts by less than 0 or by the width and more give 0, to the right the sign.
fn left_shift(call: &mut Call, out: Out) -> Result<()> {
    let slots = shift_operands(call, "lshift")?;
    operator_of(call, out, Rule::Promote, "shift_left", &slots, |_, v| {
        let width = 8 * v[0].scalar().bytes();
        (v[1].lt(0) | v[1].ge(width)).select(v[0].like(0.0), v[0] << (v[1] & (width - 1)))
    })
}

fn right_shift(call: &mut Call, out: Out) -> Result<()> {
    let slots = shift_operands(call, "rshift")?;
    operator_of(call, out, Rule::Promote, "shift_right", &slots, |_, v| {
        let width = 8 * v[0].scalar().bytes();
        let distance = (v[1].lt(0) | v[1].ge(width)).select(v[1].like(f64::from(width - 1)), v[1]);
        v[0] >> distance
    })
}

fn shift_operands(call: &Call, name: &str) -> Result<[Slot; 2]> {
    let other = match &call.args[1] {
        Arg::Scalar(s) => Slot::Scalar(*s),
        _ => Slot::Tensor(1),
    };
    let common = common_dtype(call)?;
    check!(common.is_integer(), NotImplemented, "\"{name}\" not implemented for '{common}'");
    Ok([Slot::Tensor(0), other])
}

fn common_dtype(call: &Call) -> Result<dml_kernel::DType> {
    let other = match &call.args[1] {
        Arg::Scalar(s) => Promoted::Scalar(*s as Number),
        _ => Promoted::Tensor(call.any_tensor(1)?),
    };
    Ok(result_type(&[Promoted::Tensor(call.any_tensor(0)?), other], call.host.default_dtype()))
}

fn floats_only(call: &Call, name: &str) -> Result<()> {
    let common = common_dtype(call)?;
    check!(common.is_float(), NotImplemented, "\"{name}\" not implemented for '{common}'");
    Ok(())
}

fn integers_only(call: &Call, name: &str) -> Result<()> {
    let common = common_dtype(call)?;
    check!(common.is_integer(), NotImplemented, "\"{name}\" not implemented for '{common}'");
    Ok(())
}
