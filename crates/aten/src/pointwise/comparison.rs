//! Comparisons, logic and bit operations of two operands, minimum and maximum.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_integral, operator, operator_of};
use dml_compute::pointwise::comparison as functions;
use dml_compute::pointwise::function::Function;

operators! {
    compare(self, other, out; of functions::EQ)
        .float8(float8::of_one_dtype)
    {
        hot "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; of functions::NE)
        .float8(float8::of_one_dtype)
    {
        hot "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; of functions::LT) {
        hot "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; of functions::LE) {
        hot "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; of functions::GT) {
        hot "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; of functions::GE) {
        hot "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        hot "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::LOGICAL_AND) {
        "aten::logical_and(Tensor self, Tensor other) -> Tensor",
        "aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::LOGICAL_OR) {
        "aten::logical_or(Tensor self, Tensor other) -> Tensor",
        "aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::LOGICAL_XOR) {
        "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
        "aten::logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; of functions::BITWISE_AND) {
        "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; of functions::BITWISE_OR) {
        "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; of functions::BITWISE_XOR) {
        "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::MAXIMUM) {
        "aten::maximum(Tensor self, Tensor other) -> Tensor",
        "aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::MINIMUM) {
        "aten::minimum(Tensor self, Tensor other) -> Tensor",
        "aten::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::FMAX) {
        "aten::fmax(Tensor self, Tensor other) -> Tensor",
        "aten::fmax.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; of functions::FMIN) {
        "aten::fmin(Tensor self, Tensor other) -> Tensor",
        "aten::fmin.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn compare(call: &mut Call, x: AnyTensor, y: TensorOrScalar, out: Out, function: &'static Function) -> Result<()> {
    operator_of(call, out, function, &[x.into(), y.into()])
}

fn binary(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    operator(call, out, function, &[x, y], &[])
}

fn bitwise(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    check_integral(&x, function.name)?;
    check_integral(&y, function.name)?;
    binary(call, x, y, out, function)
}
