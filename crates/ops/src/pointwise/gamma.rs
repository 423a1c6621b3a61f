//! The gamma function's relatives: its logarithm and derivatives, incomplete and multivariate ones, and zeta.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{self, Out, Rule, Slot, heavy_operator};
use dml_kernel::{DType, math};
use math::special;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(lgamma, "aten::lgamma", "aten::lgamma_", "aten::lgamma.out" @ 1),
    &overloads!(digamma, "aten::digamma", "aten::digamma_", "aten::digamma.out" @ 1),
    &overloads!(mvlgamma, "aten::mvlgamma", "aten::mvlgamma_", "aten::mvlgamma.out" @ 2),
    &overloads!(|c: &mut Call, out| incomplete(c, out, "igamma", special::igamma), "aten::igamma", "aten::igamma_", "aten::igamma.out" @ 2),
    &overloads!(|c: &mut Call, out| incomplete(c, out, "igammac", special::igammac), "aten::igammac", "aten::igammac_", "aten::igammac.out" @ 2),
    &[
        op("aten::polygamma", |c| polygamma(c, Out::New)),
        op("aten::polygamma.out", |c| polygamma(c, Out::Arg(2))),
        op("aten::special_zeta", |c| zeta(c, Out::New)),
        op("aten::special_zeta.out", |c| zeta(c, Out::Arg(2))),
    ],
];

fn lgamma(call: &mut Call, out: Out) -> Result<()> {
    heavy_operator(call, out, Rule::Float, "lgamma", &[Slot::Tensor(0)], |_, v| special::lgamma(v[0]))
}

fn digamma(call: &mut Call, out: Out) -> Result<()> {
    heavy_operator(call, out, Rule::Float, "digamma", &[Slot::Tensor(0)], |_, v| special::digamma(v[0]))
}

/// `mvlgamma(self, p)`: `p (p - 1) / 4 log(pi) + sum of lgamma(self - j / 2)`, j from 0 to p - 1
fn mvlgamma(call: &mut Call, out: Out) -> Result<()> {
    let p = call.int(1)?;
    check!(call.any_tensor(0)?.dtype != DType::Bool, Runtime, "The input tensor may not be a boolean tensor.");
    check!(p >= 1, Runtime, "p has to be greater than or equal to 1");
    let constant = (p as f64) * (p as f64 - 1.0) / 4.0 * std::f64::consts::PI.ln();
    let slots = [Slot::Tensor(0), Slot::Number(Number::Int(p)), Slot::Number(Number::Double(constant))];
    heavy_operator(call, out, Rule::Float, "mvlgamma", &slots, |b, v| {
        let (j, sum) = (b.var(v[0].like(0.0)), b.var(v[2]));
        b.while_(
            || j.get().lt(v[1]),
            || {
                sum.set(sum.get() + special::lgamma(v[0] - 0.5 * j.get()));
                j.set(j.get() + 1.0);
            },
        );
        sum.get()
    })
}

/// `polygamma(n, self)`: the n-th derivative of [`special::digamma`], `(-1)^(n + 1) n! zeta(n + 1, self)` for n > 0.
fn polygamma(call: &mut Call, out: Out) -> Result<()> {
    let n = call.int(0)?;
    check!(n >= 0, Runtime, "polygamma(n, x) does not support negative n.");
    let tensor = Slot::Tensor(1);
    if n == 0 {
        return heavy_operator(call, out, Rule::Float, "digamma", &[tensor], |_, v| special::digamma(v[0]));
    }
    if n == 1 {
        // CPU has an algorithm of its own for it, which knows the limits at the infinities.
        return heavy_operator(call, out, Rule::Float, "trigamma", &[tensor], |_, v| {
            let limit = v[0].gt(0).select(v[0].like(0.0), v[0].like(f64::NAN));
            v[0].is_inf().select(limit, special::zeta(v[0].like(2.0), v[0]))
        });
    }
    // Beyond 170 it is infinite.
    let factorial: f64 = (1..=n.min(171)).map(|k| k as f64).product();
    let factor = if n % 2 == 0 { -factorial } else { factorial };
    let slots = [tensor, Slot::Number(Number::Int(n + 1)), Slot::Number(Number::Double(factor))];
    heavy_operator(call, out, Rule::Float, "polygamma", &slots, |_, v| v[2] * special::zeta(v[1], v[0]))
}

/// `special_zeta(self, other)`: the Hurwitz zeta function of exponent `self` from `other` on
fn zeta(call: &mut Call, out: Out) -> Result<()> {
    elementwise::check_not_half(call, &[0, 1], "zeta")?;
    let slots = [Slot::Tensor(0), Slot::Tensor(1)];
    heavy_operator(call, out, Rule::Float, "zeta", &slots, |_, v| special::zeta(v[0], v[1]))
}

/// `igamma(self, other)` and `igammac`: regularized incomplete gamma functions of `self`, to and from `other`
fn incomplete(call: &mut Call, out: Out, name: &'static str, body: math::Binary) -> Result<()> {
    let common = elementwise::common_dtype(call, &[0, 1])?;
    check!(common.is_float(), NotImplemented, "\"{name}_cpu\" not implemented for '{common}'");
    let slots = [Slot::Tensor(0), Slot::Tensor(1)];
    heavy_operator(call, out, Rule::Promote, name, &slots, |_, v| body(v[0], v[1]))
}
