//! The gated linear unit `a * sigmoid(b)` of the two halves of a tensor (Y. Dauphin et al.,
//! "Language modeling with gated convolutional networks", ICML 2017), its gradient, and the
//! derivatives of both along a direction.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::pointwise::glu::{self as functions, halves, inputs};
use dml_compute::pointwise::kernel;
use dml_compute::view::View;
use dml_compute::view::layout::result_strides;

operators! {
    glu(self, dim, out) {
        "aten::glu(Tensor self, int dim=-1) -> Tensor",
        "aten::glu.out(Tensor self, int dim=-1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, dim, out) {
        "aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
        "aten::glu_backward.grad_input(Tensor grad_output, Tensor self, int dim, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    jvp(glu, x, dx, dim) {
        "aten::glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor",
    }
    backward_jvp(grad_x, grad_glu, x, dgrad_glu, dx, dim) {
        "aten::glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor",
    }
}

/// `dim` as a dimension of `x` with an even size.
fn half_dimension(call: &Call, x: &View, dim: i64, name: &str) -> Result<usize> {
    check!(x.dim() > 0, Runtime, "glu does not support 0-dimensional tensors");
    let dim = call.wrap_dim(dim, x.dim())?;
    let n = x.sizes[dim];
    check!(n % 2 == 0, Runtime, "Halving dimension must be even, but dimension {dim} is size {n}");
    check!(x.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", x.dtype);
    Ok(dim)
}

/// Checks that a tensor has the shape of half of `x`.
fn check_half(t: &View, x: &View, dim: usize, name: &str) -> Result<()> {
    let [half, _] = halves(x, dim);
    check!(
        t.sizes == half.sizes,
        Runtime,
        "{name}: expected a tensor of shape {:?}, half of the input, but got {:?}",
        half.sizes.as_slice(),
        t.sizes.as_slice()
    );
    Ok(())
}

fn glu(call: &mut Call, x: &View, dim: i64, out: Out) -> Result<()> {
    let dim = half_dimension(call, x, dim, "glu_cpu")?;
    let [a, b] = halves(x, dim);
    let strides = || result_strides(&a.sizes, &[&a, &b]);
    let out = call.result_strided(out.given(), x.dtype, &a.sizes, strides)?;
    kernel::run(call, &functions::GLU, &[&out], &inputs(&[&a, &b]), x.dtype)?;
    call.ret(out);
    Ok(())
}

fn backward(call: &mut Call, grad: &View, x: &View, dim: i64, out: Out) -> Result<()> {
    let dim = half_dimension(call, x, dim, "glu_backward_cpu")?;
    let [a, b] = halves(x, dim);
    let sizes = call.broadcast(&grad.sizes, &a.sizes)?;
    check!(
        sizes == a.sizes,
        Runtime,
        "glu_backward: a gradient of shape {:?} does not fit half of the input, of shape {:?}",
        grad.sizes.as_slice(),
        a.sizes.as_slice()
    );
    let out = call.result(out.given(), x.dtype, &x.sizes)?;
    let [of_a, of_b] = halves(&out, dim);
    kernel::run(call, &functions::GLU_BACKWARD, &[&of_a, &of_b], &inputs(&[grad, &a, &b]), x.dtype)?;
    call.ret(out);
    Ok(())
}

/// The derivative of the result along `dx`.
fn jvp(call: &mut Call, result: &View, x: &View, dx: &View, dim: i64) -> Result<()> {
    let dim = half_dimension(call, x, dim, "glu_jvp")?;
    check_half(result, x, dim, "glu_jvp")?;
    check!(dx.sizes == x.sizes, Runtime, "glu_jvp: x has shape {:?}, dx {:?}", x.sizes.as_slice(), dx.sizes.as_slice());
    let ([_, b], [da, db]) = (halves(x, dim), halves(dx, dim));
    let out = call.empty_strided(x.dtype, &result.sizes, &result_strides(&result.sizes, &[result]))?;
    kernel::run(call, &functions::GLU_JVP, &[&out], &inputs(&[result, &b, &da, &db]), x.dtype)?;
    call.ret(out);
    Ok(())
}

/// The derivative of the gradient along `dgrad_glu` and `dx`.
fn backward_jvp(
    call: &mut Call,
    grad_x: &View,
    grad: &View,
    x: &View,
    dgrad: &View,
    dx: &View,
    dim: i64,
) -> Result<()> {
    let dim = half_dimension(call, x, dim, "glu_backward_jvp")?;
    for t in [grad, dgrad] {
        check_half(t, x, dim, "glu_backward_jvp")?;
    }
    for t in [grad_x, dx] {
        check!(
            t.sizes == x.sizes,
            Runtime,
            "glu_backward_jvp: x has shape {:?}, its gradient or dx {:?}",
            x.sizes.as_slice(),
            t.sizes.as_slice()
        );
    }
    let ([a, b], [da, db]) = (halves(x, dim), halves(dx, dim));
    let out = call.empty_strided(x.dtype, &x.sizes, &result_strides(&x.sizes, &[grad_x]))?;
    let [of_a, of_b] = halves(&out, dim);
    let operands = inputs(&[grad, dgrad, &a, &b, &da, &db]);
    kernel::run(call, &functions::GLU_BACKWARD_JVP, &[&of_a, &of_b], &operands, x.dtype)?;
    call.ret(out);
    Ok(())
}
