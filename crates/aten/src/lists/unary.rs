//! Functions of one list of tensors.

use crate::lists::foreach::{Listed, foreach};
use crate::operator::argument::Tensors;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::unary::Domain;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::unary as functions;
use smallvec::smallvec;

operators! {
    unary(self, in_place; Rule::Float, Domain::Any, &functions::SQRT) {
        "aten::_foreach_sqrt(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::RSQRT) {
        "aten::_foreach_rsqrt(Tensor[] self) -> Tensor[]",
        "aten::_foreach_rsqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::RECIPROCAL) {
        "aten::_foreach_reciprocal(Tensor[] self) -> Tensor[]",
        "aten::_foreach_reciprocal_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::EXP) {
        "aten::_foreach_exp(Tensor[] self) -> Tensor[]",
        "aten::_foreach_exp_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::LOG) {
        "aten::_foreach_log(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::EXPM1) {
        "aten::_foreach_expm1(Tensor[] self) -> Tensor[]",
        "aten::_foreach_expm1_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::LOG10) {
        "aten::_foreach_log10(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log10_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::LOG1P) {
        "aten::_foreach_log1p(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log1p_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::LOG2) {
        "aten::_foreach_log2(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log2_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::SIN) {
        "aten::_foreach_sin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::COS) {
        "aten::_foreach_cos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::TAN) {
        "aten::_foreach_tan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::ASIN) {
        "aten::_foreach_asin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_asin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::ACOS) {
        "aten::_foreach_acos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_acos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::ATAN) {
        "aten::_foreach_atan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_atan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::SINH) {
        "aten::_foreach_sinh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sinh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::COSH) {
        "aten::_foreach_cosh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cosh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::ERF) {
        "aten::_foreach_erf(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erf_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::ERFC) {
        "aten::_foreach_erfc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erfc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, &functions::FLOOR) {
        "aten::_foreach_floor(Tensor[] self) -> Tensor[]",
        "aten::_foreach_floor_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, &functions::CEIL) {
        "aten::_foreach_ceil(Tensor[] self) -> Tensor[]",
        "aten::_foreach_ceil_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, &functions::TRUNC) {
        "aten::_foreach_trunc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_trunc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, &functions::ROUND) {
        "aten::_foreach_round(Tensor[] self) -> Tensor[]",
        "aten::_foreach_round_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Float, &functions::FRAC) {
        "aten::_foreach_frac(Tensor[] self) -> Tensor[]",
        "aten::_foreach_frac_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::TANH) {
        "aten::_foreach_tanh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tanh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Float, Domain::Any, &functions::SIGMOID) {
        "aten::_foreach_sigmoid(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sigmoid_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Signed, &functions::NEG) {
        "aten::_foreach_neg(Tensor[] self) -> Tensor[]",
        "aten::_foreach_neg_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Number, &functions::ABS) {
        "aten::_foreach_abs(Tensor[] self) -> Tensor[]",
        "aten::_foreach_abs_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; Rule::Promote, Domain::Any, &functions::SIGN) {
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
    function: &'static Function,
) -> Result<()> {
    let listed = Listed { lists: smallvec![list], ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &|row| domain.check(row.tensors[0], function.name))
}
