//! Convolutions and their gradients, as products whose operands are windows over tensors: nothing is unfolded in
//! memory (implicit GEMM: Chetlur et al., "cuDNN: Efficient primitives for deep learning", 2014).
//!
//! A convolution relates an inner side (of a plain convolution: its input), an outer side (its result) and a weight
//! `[outer channels, inner channels, kernel..]`. There are three products, each computes one from the other two. A
//! transposed convolution and its gradients are the same three in other roles.

mod geometry;
mod named;
mod passes;

use crate::check;
use crate::matmul;
use crate::movement::copy;
use crate::operator::call::{Call, Ret, Scalar};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::tensor::Tensor;
use crate::tensor::memory_format::{self, dense, is_channels_last};
use geometry::{Arguments, Geometry};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::convolution_overrideable", overrideable),
        op("aten::convolution_backward_overrideable", overrideable_backward),
    ],
    named::OPERATORS,
];

/// `convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)`
fn overrideable(call: &mut Call) -> Result<()> {
    let (input, weight) = (call.tensor(0)?, call.tensor(1)?);
    let out = forward(call, input, weight, call.opt_tensor(2)?, &Arguments::of(call, 3)?)?;
    call.ret(out);
    Ok(())
}

/// `convolution_backward_overrideable(grad_output, input, weight, stride, padding, dilation, transposed,
/// output_padding, groups, output_mask) -> (grad_input, grad_weight, grad_bias)`
fn overrideable_backward(call: &mut Call) -> Result<()> {
    let [grad, input, weight] = [call.tensor(0)?, call.tensor(1)?, call.tensor(2)?];
    let gradients = backward(call, [grad, input, weight], &Arguments::of(call, 3)?, call.flags(9)?)?;
    for t in gradients {
        call.ret_value(t.map_or(Ret::None, Ret::Tensor));
    }
    Ok(())
}

/// The convolution of `input` by `weight`, plus `bias`, as a new tensor.
fn forward(
    call: &Call,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    arguments: &Arguments,
) -> Result<Tensor> {
    let geometry = Geometry::new(input, weight, arguments)?;
    check_dtypes(call, input, weight)?;
    let sizes = geometry.result();
    if let Some(bias) = bias {
        check!(
            bias.dtype == input.dtype,
            Runtime,
            "Input type ({}) and bias type ({}) should be the same",
            input.dtype,
            bias.dtype
        );
        check!(
            bias.sizes.as_slice() == [sizes[1]],
            Runtime,
            "Given weight of size {:?}, expected bias to be 1-dimensional with {} elements, but got bias of size {:?} \
             instead",
            weight.sizes.as_slice(),
            sizes[1],
            bias.sizes.as_slice()
        );
    }
    let last = is_channels_last(input) || is_channels_last(weight);
    let (input, weight) = (dense(call, input, last)?, dense(call, weight, last)?);
    let out = empty(call, &input, &sizes, last)?;
    if out.numel() > 0 {
        if geometry.transposed {
            passes::to_inner(call, &geometry, &input, &weight, &out, bias)?;
        } else {
            passes::to_outer(call, &geometry, &input, &weight, &out, bias)?;
        }
    }
    Ok(out)
}

/// Gradients of input, weight and bias, those that are wanted, of `[grad, input, weight]`.
fn backward(
    call: &Call,
    [grad, input, weight]: [&Tensor; 3],
    arguments: &Arguments,
    wanted: &[u8],
) -> Result<[Option<Tensor>; 3]> {
    let geometry = Geometry::new(input, weight, arguments)?;
    check_dtypes(call, input, weight)?;
    check_dtypes(call, input, grad)?;
    check!(
        grad.sizes == geometry.result(),
        Runtime,
        "Expected grad_output of size {:?}, but got {:?}",
        geometry.result().as_slice(),
        grad.sizes.as_slice()
    );
    let last = is_channels_last(input) || is_channels_last(weight);
    let grad = dense(call, grad, last)?;
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let mut gradients = [const { None }; 3];
    if wants(0) {
        let weight = dense(call, weight, last)?;
        let out = empty(call, &grad, &input.sizes, last)?;
        if geometry.transposed {
            passes::to_outer(call, &geometry, &grad, &weight, &out, None)?;
        } else {
            passes::to_inner(call, &geometry, &grad, &weight, &out, None)?;
        }
        gradients[0] = Some(out);
    }
    if wants(1) {
        let input = dense(call, input, last)?;
        let out = empty(call, &grad, &weight.sizes, last)?;
        let (inner, outer) = if geometry.transposed { (&grad, &input) } else { (&input, &grad) };
        passes::to_weight(call, &geometry, inner, outer, &out)?;
        gradients[1] = Some(out);
    }
    if wants(2) {
        let out = call.empty(grad.dtype, &[grad.sizes[1]])?;
        passes::to_bias(call, &grad, &out)?;
        gradients[2] = Some(out);
    }
    Ok(gradients)
}

fn check_dtypes(call: &Call, a: &Tensor, b: &Tensor) -> Result<()> {
    check!(a.dtype == b.dtype, Runtime, "expected scalar type {} but found {}", a.dtype, b.dtype);
    matmul::check_dtype(call, a.dtype)
}

/// A new dense tensor of the wanted order.
fn empty(call: &Call, like: &Tensor, sizes: &[i64], last: bool) -> Result<Tensor> {
    call.empty_strided(like.dtype, sizes, &memory_format::strides(sizes, last))
}

/// Sums over nothing: zeros, or the bias.
fn fill(call: &Call, out: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    let Some(bias) = bias else { return copy::fill_with(call, out, Scalar::Int(0)) };
    let mut strides = crate::tensor::Dims::from_elem(0, out.dim());
    strides[1] = bias.strides[0];
    copy::device_copy(call, &bias.as_strided(&out.sizes, &strides, 0), out)
}
