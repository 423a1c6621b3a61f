//! Choosing between values element by element: where, clamp.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::pointwise::operator::{Argument, common_dtype, input, result_tensor, ruled_operator};
use crate::tensor::promote::{Promoted, result_type};
use crate::{check, operators};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::{comparison, kernel, selection as functions};
use dml_compute::scalar::Scalar as Number;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    where_(condition, self, other, out).complex(Complex::Run(complex::where_)).float8(float8::choose) {
        hot "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    clamp(self, min, max, out) {
        "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
        "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
        "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    clamp_min(self, min, out) {
        hot "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
        "aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
        "aten::clamp_min.out(Tensor self, Scalar min, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
        "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)",
        "aten::clamp_min.Tensor_out(Tensor self, Tensor min, *, Tensor(a!) out) -> Tensor(a!)",
    }
    clamp_max(self, max, out) {
        "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
        "aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
        "aten::clamp_max.out(Tensor self, Scalar max, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
        "aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)",
        "aten::clamp_max.Tensor_out(Tensor self, Tensor max, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn where_(call: &mut Call, condition: AnyTensor, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    check!(
        matches!(condition.dtype, DType::Bool | DType::U8),
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype
    );
    let common = common_dtype(call, &[x, y]);
    if let Out::Into(t) = out {
        check!(t.dtype == common, Runtime, "Expected out type to be {common} but got {}", t.dtype);
    }
    let inputs = [input(call, &condition)?, input(call, &x)?, input(call, &y)?];
    let out = result_tensor(call, out, common, &inputs)?;
    kernel::run(call, &functions::WHERE, &[&out], &inputs, common)?;
    call.ret(out);
    Ok(())
}

/// Checks that the common dtype of a limit and a tensor can represent the limit, as the CPU does.
pub fn check_limit(limit: Number, common: DType) -> Result<()> {
    check!(common != DType::Bool, NotImplemented, "\"clamp_scalar_cpu\" not implemented for 'Bool'");
    check_all_fit(&[limit], common)
}

fn check_limits(call: &Call, x: AnyTensor, limits: &[TensorOrScalar]) -> Result<()> {
    let mut promoted: SmallVec<[Promoted; 3]> = SmallVec::from_slice(&[Promoted::Tensor(&x)]);
    promoted.extend(limits.iter().map(|&limit| limit.into()));
    let common = result_type(&promoted, call.host.default_dtype());
    let takes = limits.len() < 2 || common != DType::Bool;
    check!(takes, NotImplemented, "\"clamp_cpu\" not implemented for 'Bool'");
    for limit in limits {
        if let TensorOrScalar::Scalar(limit) = limit {
            check_limit(*limit, common)?;
        }
    }
    Ok(())
}

/// Runs a function of a tensor and its limits. With scalar limits nothing is cast to `out=`, with
/// tensor limits the result is cast.
fn limited(
    call: &mut Call,
    out: Out,
    function: &'static Function,
    x: AnyTensor,
    limits: &[TensorOrScalar],
) -> Result<()> {
    let tensors = limits.iter().any(|limit| matches!(limit, TensorOrScalar::Tensor(_)));
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    arguments.push(x.into());
    arguments.extend(limits.iter().map(|&limit| limit.into()));
    ruled_operator(call, out, if tensors { Rule::Promote } else { Rule::Exact }, function.into(), &arguments, &|_| {
        Ok(())
    })
}

/// NaN in any of the three operands gives NaN. If the bounds cross, the upper one wins.
fn clamp(
    call: &mut Call,
    x: AnyTensor,
    low: Option<TensorOrScalar>,
    high: Option<TensorOrScalar>,
    out: Out,
) -> Result<()> {
    match (low, high) {
        (Some(low), Some(high)) => {
            check_limits(call, x, &[low, high])?;
            limited(call, out, &functions::CLAMP, x, &[low, high])
        }
        (Some(low), None) => clamp_min(call, x, low, out),
        (None, Some(high)) => clamp_max(call, x, high, out),
        (None, None) => Err(Error::Runtime("torch.clamp: At least one of 'min' or 'max' must not be None".to_owned())),
    }
}

fn clamp_min(call: &mut Call, x: AnyTensor, low: TensorOrScalar, out: Out) -> Result<()> {
    check_limits(call, x, &[low])?;
    limited(call, out, &comparison::MAXIMUM, x, &[low])
}

fn clamp_max(call: &mut Call, x: AnyTensor, high: TensorOrScalar, out: Out) -> Result<()> {
    check_limits(call, x, &[high])?;
    limited(call, out, &comparison::MINIMUM, x, &[high])
}
