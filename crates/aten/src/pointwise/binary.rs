//! Functions of two tensors other than arithmetic: angles, lengths, logarithms, signs, bits.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{common_dtype, operator, operator_of};
use crate::tensor::promote::result_type;
use crate::{check, operators};
use dml_compute::pointwise::binary as functions;
use dml_kernel::DType;

operators! {
    atan2(self, other, out) {
        "aten::atan2(Tensor self, Tensor other) -> Tensor",
        "aten::atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    hypot(self, other, out) {
        "aten::hypot(Tensor self, Tensor other) -> Tensor",
        "aten::hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::hypot.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    xlogy(self, other, out) {
        "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::xlogy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::xlogy.OutTensor(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    xlog1py(self, other, out) {
        "aten::special_xlog1py(Tensor self, Tensor other) -> Tensor",
        "aten::special_xlog1py.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    sign_of(self, other, out) {
        "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::copysign_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::copysign.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    heaviside(self, values, out) {
        "aten::heaviside(Tensor self, Tensor values) -> Tensor",
        "aten::heaviside_(Tensor(a!) self, Tensor values) -> Tensor(a!)",
        "aten::heaviside.out(Tensor self, Tensor values, *, Tensor(a!) out) -> Tensor(a!)",
    }
    log_add_exp(self, other, out).complex(Complex::of(&functions::LOGADDEXP)) {
        "aten::logaddexp(Tensor self, Tensor other) -> Tensor",
        "aten::logaddexp.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    log_add_exp2(self, other, out) {
        "aten::logaddexp2(Tensor self, Tensor other) -> Tensor",
        "aten::logaddexp2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    gcd(self, other, out) {
        "aten::gcd(Tensor self, Tensor other) -> Tensor",
        "aten::gcd_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::gcd.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    lcm(self, other, out) {
        "aten::lcm(Tensor self, Tensor other) -> Tensor",
        "aten::lcm_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::lcm.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    left_shift(self, other, out) {
        "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::__lshift__.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    }
    right_shift(self, other, out) {
        "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::__rshift__.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    }
}

fn atan2(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator(call, out, &functions::ATAN2, &[x, y], &[])
}

/// Scaled by the larger operand, so that squares do not overflow. An infinity wins over NaN.
fn hypot(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    floats_only(call, x, y, "hypot")?;
    operator(call, out, &functions::HYPOT, &[x, y], &[])
}

/// `self * log(other)`, 0 if self is 0 unless other is NaN
fn xlogy(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator(call, out, &functions::XLOGY, &[x, y], &[])
}

fn xlog1py(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator(call, out, &functions::XLOG1PY, &[x, y], &[])
}

fn sign_of(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator(call, out, &functions::COPYSIGN, &[x, y], &[])
}

/// 0 below zero, 1 above, `values` at zero
fn heaviside(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    check!(x.dtype == y.dtype, Runtime, "heaviside is not yet implemented for tensors with different dtypes.");
    if let Out::Into(t) = out {
        check!(t.dtype == x.dtype, Runtime, "heaviside is not yet implemented for tensors with different dtypes.");
    }
    operator(call, out, &functions::HEAVISIDE, &[x, y], &[])
}

/// `log(e^self + e^other)`
fn log_add_exp(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    floats_only(call, x, y, "logaddexp")?;
    operator(call, out, &functions::LOGADDEXP, &[x, y], &[])
}

/// `log2(2^self + 2^other)`
fn log_add_exp2(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    floats_only(call, x, y, "logaddexp2")?;
    operator(call, out, &functions::LOGADDEXP2, &[x, y], &[])
}

fn gcd(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    integers_only(call, x, y, "gcd")?;
    operator(call, out, &functions::GCD, &[x, y], &[])
}

fn lcm(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    integers_only(call, x, y, "lcm")?;
    operator(call, out, &functions::LCM, &[x, y], &[])
}

/// Shifts by negative numbers or by at least the width give 0, to the right the sign.
fn left_shift(call: &mut Call, x: AnyTensor, y: TensorOrScalar, out: Out) -> Result<()> {
    check_shift(call, x, y, "lshift")?;
    operator_of(call, out, &functions::SHIFT_LEFT, &[x.into(), y.into()])
}

fn right_shift(call: &mut Call, x: AnyTensor, y: TensorOrScalar, out: Out) -> Result<()> {
    check_shift(call, x, y, "rshift")?;
    operator_of(call, out, &functions::SHIFT_RIGHT, &[x.into(), y.into()])
}

fn check_shift(call: &Call, x: AnyTensor, y: TensorOrScalar, name: &str) -> Result<()> {
    let common = result_type(&[TensorOrScalar::Tensor(x).into(), y.into()], call.host.default_dtype());
    check_integers(common, name)
}

fn floats_only(call: &Call, x: AnyTensor, y: AnyTensor, name: &str) -> Result<()> {
    let common = common_dtype(call, &[x, y]);
    check!(common.is_float(), NotImplemented, "\"{name}\" not implemented for '{common}'");
    Ok(())
}

fn integers_only(call: &Call, x: AnyTensor, y: AnyTensor, name: &str) -> Result<()> {
    check_integers(common_dtype(call, &[x, y]), name)
}

fn check_integers(common: DType, name: &str) -> Result<()> {
    check!(common.is_integer(), NotImplemented, "\"{name}\" not implemented for '{common}'");
    Ok(())
}
