//! Comparisons, logic and bit operations of two operands, minimum and maximum.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_integral, operator, operator_of};
use dml_compute::pointwise::comparison::EQUAL;
use dml_compute::pointwise::operator::Rule;
use dml_kernel::math::comparison as math;
use dml_kernel::math::comparison::{maximum, minimum};
use dml_kernel::{ScalarType, Value};

operators! {
    compare(self, other, out; EQUAL.0, EQUAL.1) {
        "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; "ne", |a, b| !math::equal(a, b)) {
        "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; "lt", math::less) {
        "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; "le", math::less_equal) {
        "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; "gt", |a, b| math::less(b, a)) {
        "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    compare(self, other, out; "ge", |a, b| math::less_equal(b, a)) {
        "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Bool, "logical_and", |a, b| a.cast(ScalarType::Bool) & b.cast(ScalarType::Bool)) {
        "aten::logical_and(Tensor self, Tensor other) -> Tensor",
        "aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Bool, "logical_or", |a, b| a.cast(ScalarType::Bool) | b.cast(ScalarType::Bool)) {
        "aten::logical_or(Tensor self, Tensor other) -> Tensor",
        "aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Bool, "logical_xor", |a, b| a.cast(ScalarType::Bool) ^ b.cast(ScalarType::Bool)) {
        "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
        "aten::logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; "bitwise_and", |a, b| a & b) {
        "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; "bitwise_or", |a, b| a | b) {
        "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bitwise(self, other, out; "bitwise_xor", |a, b| a ^ b) {
        "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Promote, "maximum", maximum) {
        "aten::maximum(Tensor self, Tensor other) -> Tensor",
        "aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Promote, "minimum", minimum) {
        "aten::minimum(Tensor self, Tensor other) -> Tensor",
        "aten::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Promote, "fmax", |a, b| a.is_nan().select(b, b.is_nan().select(a, maximum(a, b)))) {
        "aten::fmax(Tensor self, Tensor other) -> Tensor",
        "aten::fmax.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    binary(self, other, out; Rule::Promote, "fmin", |a, b| a.is_nan().select(b, b.is_nan().select(a, minimum(a, b)))) {
        "aten::fmin(Tensor self, Tensor other) -> Tensor",
        "aten::fmin.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn compare(
    call: &mut Call,
    x: AnyTensor,
    y: TensorOrScalar,
    out: Out,
    family: &'static str,
    body: impl for<'b> Fn(Value<'b>, Value<'b>) -> Value<'b>,
) -> Result<()> {
    operator_of(call, out, Rule::Bool, family, &[x.into(), y.into()], |_, v| body(v[0], v[1]))
}

fn binary(
    call: &mut Call,
    x: AnyTensor,
    y: AnyTensor,
    out: Out,
    rule: Rule,
    family: &'static str,
    body: impl for<'b> Fn(Value<'b>, Value<'b>) -> Value<'b>,
) -> Result<()> {
    operator(call, out, rule, family, &[x, y], &[], |_, v| body(v[0], v[1]))
}

fn bitwise(
    call: &mut Call,
    x: AnyTensor,
    y: AnyTensor,
    out: Out,
    family: &'static str,
    body: impl for<'b> Fn(Value<'b>, Value<'b>) -> Value<'b>,
) -> Result<()> {
    check_integral(&x, family)?;
    check_integral(&y, family)?;
    binary(call, x, y, out, Rule::Promote, family, body)
}
