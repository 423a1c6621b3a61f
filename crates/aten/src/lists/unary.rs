//! Functions of one list of tensors.

use crate::lists::foreach::{TensorList, foreach};
use crate::operator::argument::Tensors;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::unary::check_dtype;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::unary as functions;
use smallvec::smallvec;

operators! {
    unary(self, in_place; &functions::SQRT)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "sqrt"))
    {
        hot "aten::_foreach_sqrt(Tensor[] self) -> Tensor[]",
        hot "aten::_foreach_sqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::RSQRT)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "rsqrt"))
    {
        "aten::_foreach_rsqrt(Tensor[] self) -> Tensor[]",
        "aten::_foreach_rsqrt_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::RECIPROCAL)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "reciprocal"))
    {
        "aten::_foreach_reciprocal(Tensor[] self) -> Tensor[]",
        hot "aten::_foreach_reciprocal_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::EXP)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "exp"))
    {
        "aten::_foreach_exp(Tensor[] self) -> Tensor[]",
        "aten::_foreach_exp_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::LOG)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "log"))
    {
        "aten::_foreach_log(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::EXPM1)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "expm1"))
    {
        "aten::_foreach_expm1(Tensor[] self) -> Tensor[]",
        "aten::_foreach_expm1_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::LOG10)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "log10"))
    {
        "aten::_foreach_log10(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log10_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::LOG1P)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "log1p"))
    {
        "aten::_foreach_log1p(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log1p_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::LOG2)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "log2"))
    {
        "aten::_foreach_log2(Tensor[] self) -> Tensor[]",
        "aten::_foreach_log2_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::SIN)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "sin"))
    {
        "aten::_foreach_sin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::COS)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "cos"))
    {
        "aten::_foreach_cos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::TAN)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "tan"))
    {
        "aten::_foreach_tan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ASIN)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "asin"))
    {
        "aten::_foreach_asin(Tensor[] self) -> Tensor[]",
        "aten::_foreach_asin_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ACOS)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "acos"))
    {
        "aten::_foreach_acos(Tensor[] self) -> Tensor[]",
        "aten::_foreach_acos_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ATAN)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "atan"))
    {
        "aten::_foreach_atan(Tensor[] self) -> Tensor[]",
        "aten::_foreach_atan_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::SINH)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "sinh"))
    {
        "aten::_foreach_sinh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sinh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::COSH)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "cosh"))
    {
        "aten::_foreach_cosh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_cosh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ERF) {
        "aten::_foreach_erf(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erf_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ERFC) {
        "aten::_foreach_erfc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_erfc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::FLOOR) {
        "aten::_foreach_floor(Tensor[] self) -> Tensor[]",
        "aten::_foreach_floor_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::CEIL) {
        "aten::_foreach_ceil(Tensor[] self) -> Tensor[]",
        "aten::_foreach_ceil_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::TRUNC) {
        "aten::_foreach_trunc(Tensor[] self) -> Tensor[]",
        "aten::_foreach_trunc_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ROUND) {
        "aten::_foreach_round(Tensor[] self) -> Tensor[]",
        "aten::_foreach_round_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::FRAC) {
        "aten::_foreach_frac(Tensor[] self) -> Tensor[]",
        "aten::_foreach_frac_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::TANH)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "tanh"))
    {
        "aten::_foreach_tanh(Tensor[] self) -> Tensor[]",
        "aten::_foreach_tanh_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::SIGMOID)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "sigmoid"))
    {
        "aten::_foreach_sigmoid(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sigmoid_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::NEG)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "neg"))
    {
        hot "aten::_foreach_neg(Tensor[] self) -> Tensor[]",
        hot "aten::_foreach_neg_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::ABS)
        .complex(complex::each(crate::pointwise::unary::OPERATORS, "abs"))
    {
        "aten::_foreach_abs(Tensor[] self) -> Tensor[]",
        "aten::_foreach_abs_(Tensor(a!)[] self) -> ()",
    }
    unary(self, in_place; &functions::SIGN) {
        "aten::_foreach_sign(Tensor[] self) -> Tensor[]",
        "aten::_foreach_sign_(Tensor(a!)[] self) -> ()",
    }
}

fn unary(call: &mut Call, list: Tensors, in_place: bool, function: &'static Function) -> Result<()> {
    let operands = TensorList { lists: smallvec![list], ..TensorList::default() };
    foreach(call, operands, in_place, function, &|row| check_dtype(row.tensors[0], function))
}
