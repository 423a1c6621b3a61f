//! Functions of one list of tensors.

use crate::lists::foreach::{Body, Listed, foreach};
use crate::operator::argument::Tensors;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::unary::Domain;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::unary::{abs, negated, rounded, sign};
use dml_kernel::{Value, math};
use smallvec::smallvec;

operators! {
    unary(self, in_place; Rule::Float, Domain::Any, "sqrt", |v| math::sqrt(v[0])) {
        "aten::_foreach_sqrt(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "rsqrt", |v| math::rsqrt(v[0])) {
        "aten::_foreach_rsqrt(Tensor[] self) -> Tensor[]",
        "aten::_foreach_rsqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "reciprocal", |v| math::reciprocal(v[0])) {
        "aten::_foreach_reciprocal(Tensor[] self) -> Tensor[]",
        "aten::_foreach_reciprocal_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "exp", |v| math::exp(v[0])) {
        "aten::_foreach_exp(Tensor[] self) -> Tensor[]",
        "aten::_foreach_exp_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "log", |v| math::log(v[0])) {
        "aten::_foreach_log(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "expm1", |v| math::expm1(v[0])) {
        "aten::_foreach_expm1(Tensor[] self) -> Tensor[]",
        "aten::_foreach_expm1_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "log10", |v| math::log10(v[0])) {
        "aten::_foreach_log10(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log10_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "log1p", |v| math::log1p(v[0])) {
        "aten::_foreach_log1p(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log1p_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "log2", |v| math::log2(v[0])) {
        "aten::_foreach_log2(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log2_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "sin", |v| math::sin(v[0])) {
        "aten::_foreach_sin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "cos", |v| math::cos(v[0])) {
        "aten::_foreach_cos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "tan", |v| math::tan(v[0])) {
        "aten::_foreach_tan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "asin", |v| math::asin(v[0])) {
        "aten::_foreach_asin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_asin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "acos", |v| math::acos(v[0])) {
        "aten::_foreach_acos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_acos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "atan", |v| math::atan(v[0])) {
        "aten::_foreach_atan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_atan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "sinh", |v| math::sinh(v[0])) {
        "aten::_foreach_sinh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sinh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "cosh", |v| math::cosh(v[0])) {
        "aten::_foreach_cosh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cosh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "erf", |v| math::erf(v[0])) {
        "aten::_foreach_erf(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erf_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "erfc", |v| math::erfc(v[0])) {
        "aten::_foreach_erfc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erfc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, "floor", |v| rounded(v[0], Value::floor)) {
        "aten::_foreach_floor(Tensor[] self) -> Tensor[]",
        "aten::_foreach_floor_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, "ceil", |v| rounded(v[0], Value::ceil)) {
        "aten::_foreach_ceil(Tensor[] self) -> Tensor[]",
        "aten::_foreach_ceil_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, "trunc", |v| rounded(v[0], Value::trunc)) {
        "aten::_foreach_trunc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_trunc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, "round", |v| rounded(v[0], Value::round)) {
        "aten::_foreach_round(Tensor[] self) -> Tensor[]",
        "aten::_foreach_round_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Float, "frac", |v| v[0] - v[0].trunc()) {
        "aten::_foreach_frac(Tensor[] self) -> Tensor[]",
        "aten::_foreach_frac_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "tanh", |v| math::tanh(v[0])) {
        "aten::_foreach_tanh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tanh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, "sigmoid", |v| math::sigmoid(v[0])) {
        "aten::_foreach_sigmoid(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sigmoid_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Signed, "neg", |v| negated(v[0])) {
        "aten::_foreach_neg(Tensor[] self) -> Tensor[]",
        "aten::_foreach_neg_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, "abs", |v| abs(v[0])) {
        "aten::_foreach_abs(Tensor[] self) -> Tensor[]",
        "aten::_foreach_abs_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Any, "sign", |v| sign(v[0])) {
        "aten::_foreach_sign(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sign_(Tensor(a!)[] self) -> ()",
    }
}

fn unary(
    call: &mut Call,
    list: Tensors,
    in_place: bool,
    rule: Rule,
    domain: Domain,
    family: &'static str,
    body: Body,
) -> Result<()> {
    let listed = Listed { lists: smallvec![list], ..Listed::default() };
    foreach(call, listed, in_place, rule, family, &|row| domain.check(row.tensors[0], family), &body)
}
