//! Addition, subtraction and multiplication of tensors.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::pointwise::operator::{Argument, common_dtype, operator, operator_of, resized, result_tensor};
use crate::tensor::promote::{Promoted, result_type};
use crate::{check, operators};
use dml_compute::movement::copy::contiguous;
use dml_compute::pointwise::arithmetic as functions;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    add(self, other, alpha, out).complex(Complex::Run(complex::arithmetic::add)) {
        hot "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        hot "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    sub(self, other, alpha, out).complex(Complex::Run(complex::arithmetic::sub)) {
        hot "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        hot "aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    mul(self, other, out)
        .complex(Complex::of(&functions::MUL))
        .float8(float8::of_one_dtype)
    {
        hot "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
        hot "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    reversed_sub(self, other, alpha, out).complex(Complex::Run(complex::arithmetic::reversed_sub)) {
        "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        hot "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "aten::rsub.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
        "aten::rsub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    addr(self, vec1, vec2, beta, alpha, out).complex(Complex::Run(complex::arithmetic::addr)) {
        "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "aten::addr.out(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `self + alpha * other`
fn add(call: &mut Call, x: AnyTensor, y: AnyTensor, alpha: Scalar, out: Out) -> Result<()> {
    match factor(call, x, y, alpha)? {
        None => operator(call, out, &functions::ADD, &[x, y], &[]),
        Some(a) => operator(call, out, &functions::ADD_ALPHA, &[x, y], &[a]),
    }
}

/// `self - alpha * other`
fn sub(call: &mut Call, x: AnyTensor, y: AnyTensor, alpha: Scalar, out: Out) -> Result<()> {
    check_no_bools(x.dtype == DType::Bool || y.dtype == DType::Bool)?;
    match factor(call, x, y, alpha)? {
        None => operator(call, out, &functions::SUB, &[x, y], &[]),
        Some(a) => operator(call, out, &functions::SUB_ALPHA, &[x, y], &[a]),
    }
}

/// Checks that no operand of a difference is a bool tensor.
pub fn check_no_bools(any: bool) -> Result<()> {
    check!(
        !any,
        Dtype,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
         the `~` or `logical_not()` operator instead."
    );
    Ok(())
}

/// The factor `alpha`, or `None` if it is 1.
fn factor(call: &Call, x: AnyTensor, y: AnyTensor, alpha: Scalar) -> Result<Option<Scalar>> {
    if alpha == Scalar::Int(1) {
        return Ok(None);
    }
    check_alpha(common_dtype(call, &[x, y]), alpha)?;
    Ok((alpha.to_f64() != 1.0).then_some(alpha))
}

/// Checks the factor for operands with this common dtype.
pub fn check_alpha(common: DType, alpha: Scalar) -> Result<()> {
    check_factor("alpha", common, alpha)
}

fn check_factor(name: &str, common: DType, factor: Scalar) -> Result<()> {
    let bools = common == DType::Bool || !matches!(factor, Scalar::Bool(_));
    check!(bools, Runtime, "Boolean {name} only supported for Boolean results.");
    check!(
        common.is_float() || !matches!(factor, Scalar::Double(_)),
        Runtime,
        "For integral input tensors, argument {name} must not be a floating point number."
    );
    check_fits(factor, common)
}

fn mul(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, &functions::MUL, &[x.into(), Argument::Factor(y)])
}

/// A copy of an input that shares memory with `out=`.
fn copy_if_overlapping(call: &Call, out: Out, input: &View) -> Result<Option<View>> {
    match out {
        Out::Into(t) if dml_compute::view::overlap::ranges_overlap(t, input) => Ok(contiguous(call, input).map(Some)?),
        _ => Ok(None),
    }
}

/// `other - alpha * self`
fn reversed_sub(call: &mut Call, x: AnyTensor, other: TensorOrScalar, alpha: Scalar, out: Out) -> Result<()> {
    let bool_other = match other {
        TensorOrScalar::Scalar(s) => matches!(s, Scalar::Bool(_)),
        TensorOrScalar::Tensor(t) => t.dtype == DType::Bool,
    };
    check_no_bools(x.dtype == DType::Bool || bool_other)?;
    check_alpha(result_type(&[Promoted::Tensor(&x), other.into()], call.host.default_dtype()), alpha)?;
    let sizes = match other {
        TensorOrScalar::Tensor(t) => call.broadcast(&t.sizes, &x.sizes)?,
        TensorOrScalar::Scalar(_) => x.sizes.clone(),
    };
    // The CPU computes it in another tensor, and copies.
    let subtrahend = copy_if_overlapping(call, out, &x)?;
    let x = subtrahend.as_ref().map_or(x, AnyTensor);
    let minuend = match other {
        TensorOrScalar::Tensor(t) => copy_if_overlapping(call, out, &t)?,
        TensorOrScalar::Scalar(_) => None,
    };
    let other = minuend.as_ref().map_or(other, |t| TensorOrScalar::Tensor(AnyTensor(t)));
    let mut given = None;
    let out = resized(call, out, &mut given, (&sizes, &View::contiguous_strides(&sizes)))?;
    let arguments = [other.into(), x.into(), Argument::Number(alpha)];
    operator_of(call, out, &functions::RSUB, &arguments)
}

/// `beta * self + alpha * vec1 vec2^T`; self is not read if beta is 0.
fn addr(call: &mut Call, t: &View, x: &View, y: &View, beta: Scalar, alpha: Scalar, out: Out) -> Result<()> {
    check!(
        x.dim() == 1 && y.dim() == 1,
        Runtime,
        "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
        x.dim(),
        y.dim()
    );
    let (rows, columns) = (x.sizes[0], y.sizes[0]);
    let common = result_type(&[t, x, y].map(Promoted::Tensor), call.host.default_dtype());
    check_factor("beta", common, beta)?;
    check_factor("alpha", common, alpha)?;
    let fits = call.broadcast(&t.sizes, &[rows, columns])?;
    check!(
        fits.as_slice() == [rows, columns],
        Runtime,
        "The expanded size of the tensor {:?} must match [{rows}, {columns}]",
        t.sizes.as_slice()
    );
    let outer = [
        Input::Tensor(t.clone()),
        Input::Tensor(x.as_strided(&[rows, 1], &[x.strides[0], 0], 0)),
        Input::Tensor(y.as_strided(&[1, columns], &[0, y.strides[0]], 0)),
        Input::Number(beta, common),
        Input::Number(alpha, common),
    ];
    let result = result_tensor(call, out, common, &outer)?;
    if beta.to_f64() == 0.0 {
        kernel::run(call, &functions::ADDR_0, &[&result], &outer[1..], common)?;
    } else {
        kernel::run(call, &functions::ADDR, &[&result], &outer, common)?;
    }
    call.ret(result);
    Ok(())
}
