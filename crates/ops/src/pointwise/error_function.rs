//! Relatives of the error function: its inverse, its scaled complement, and the normal distribution's functions.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{self, Out, Rule, Slot, heavy_operator};
use dml_kernel::{Value, math};
use math::special;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(erfinv, "aten::erfinv", "aten::erfinv_", "aten::erfinv.out" @ 1),
    &[
        op("aten::special_erfcx", |c| not_half(c, Out::New, "erfcx", special::erfcx)),
        op("aten::special_erfcx.out", |c| not_half(c, Out::Arg(1), "erfcx", special::erfcx)),
        op("aten::special_ndtri", |c| not_half(c, Out::New, "ndtri", special::ndtri)),
        op("aten::special_ndtri.out", |c| not_half(c, Out::Arg(1), "ndtri", special::ndtri)),
        op("aten::special_log_ndtr", |c| not_half(c, Out::New, "log_ndtr", log_ndtr)),
        op("aten::special_log_ndtr.out", |c| not_half(c, Out::Arg(1), "log_ndtr", log_ndtr)),
    ],
];

/// `erfinv(self)`
fn erfinv(call: &mut Call, out: Out) -> Result<()> {
    heavy_operator(call, out, Rule::Float, "erfinv", &[Slot::Tensor(0)], |_, v| special::erfinv(v[0]))
}

fn not_half(call: &mut Call, out: Out, name: &'static str, body: math::Unary) -> Result<()> {
    elementwise::check_not_half(call, &[0], name)?;
    heavy_operator(call, out, Rule::Float, name, &[Slot::Tensor(0)], |_, v| body(v[0]))
}

/// Logarithm of the normal distribution function: far left from [`special::erfcx`], which does not vanish there.
fn log_ndtr(x: Value<'_>) -> Value<'_> {
    let t = x * std::f64::consts::FRAC_1_SQRT_2;
    let left = x.lt(-1.0);
    let result = x.builder().var(x);
    x.builder().if_else(
        left,
        || result.set(math::log(0.5 * special::erfcx(-t)) - t * t),
        || result.set(math::log1p(-0.5 * math::erfc(t))),
    );
    result.get()
}
