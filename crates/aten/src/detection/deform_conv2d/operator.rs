//! deform_conv2d and its gradient: argument checks, and the products with the im2col matrix.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, operators};
use dml_compute::detection::deform_conv2d::operator::{Convolution, Gradients};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_new;
use dml_compute::view::View;

operators! {
    forward({Operands}, {Window}) {
        "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
    }
    backward(grad, {Operands}, {Window}) {
        "torchvision::_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    }
}

group! {
    /// The tensors of a convolution.
    struct Operands<'a> {
        input: &'a View,
        weight: &'a View,
        offset: &'a View,
        mask: &'a View,
        bias: &'a View,
        use_mask: bool,
    }
}

group! {
    /// The numbers of a convolution.
    struct Window {
        stride_h: i64,
        stride_w: i64,
        pad_h: i64,
        pad_w: i64,
        dilation_h: i64,
        dilation_w: i64,
        groups: i64,
        offset_groups: i64,
    }
}

/// Checks a call, and makes its operands contiguous.
fn checked(call: &Call, operands: &Operands, window: &Window) -> Result<Convolution> {
    let Operands { input, weight, offset, mask, bias, use_mask } = *operands;
    let Window { stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups } = *window;
    let windows = [[stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w]];
    let g = crate::detection::deform_conv2d::geometry::checked(input, weight, windows, groups, offset_groups)?;
    for t in [weight, offset, bias].into_iter().chain(use_mask.then_some(mask)) {
        check!(t.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, t.dtype);
    }
    check!(input.dtype.is_float(), NotImplemented, "\"deformable_im2col\" not implemented for '{}'", input.dtype);
    let planes = g.offset_groups * g.taps();
    for (t, name, channels) in
        [(offset, "offset", 2 * planes)].into_iter().chain(use_mask.then_some((mask, "mask", planes)))
    {
        check!(t.dim() == 4, Runtime, "deform_conv2d: expected {name} of 4 dimensions, got {}D", t.dim());
        check!(
            t.sizes[1] == channels,
            Runtime,
            "{name}.shape[1] is not valid: got: {} expected: {channels}",
            t.sizes[1]
        );
        check!(t.sizes[0] == g.batch, Runtime, "invalid batch size of {name}");
        check!(
            t.sizes[2..] == g.result,
            Runtime,
            "{name} output dims: ({}, {}) - computed output dims: ({}, {})",
            t.sizes[2],
            t.sizes[3],
            g.result[0],
            g.result[1]
        );
    }
    check!(
        bias.numel() == weight.sizes[0],
        Runtime,
        "deform_conv2d: a bias of {} elements for {} channels",
        bias.numel(),
        weight.sizes[0]
    );
    Ok(Convolution {
        geometry: g,
        groups,
        results: weight.sizes[0],
        input: as_contiguous(call, input)?,
        weight: as_contiguous(call, weight)?,
        offset: as_contiguous(call, offset)?,
        mask: if use_mask { Some(as_contiguous(call, mask)?) } else { None },
    })
}

fn forward(call: &mut Call, operands: Operands, window: Window) -> Result<()> {
    let c = checked(call, &operands, &window)?;
    let Operands { input, bias, .. } = operands;
    let bias = as_contiguous(call, bias)?;
    let g = &c.geometry;
    let out = call.empty(input.dtype, &[g.batch, c.results, g.result[0], g.result[1]])?;
    c.run(call, &bias, &out)?;
    call.ret(out);
    Ok(())
}

fn backward(call: &mut Call, grad: &View, operands: Operands, window: Window) -> Result<()> {
    let c = checked(call, &operands, &window)?;
    let Operands { input, weight, offset, mask, .. } = operands;
    let g = &c.geometry;
    let wanted = [g.batch, c.results, g.result[0], g.result[1]];
    check!(
        grad.sizes.as_slice() == wanted && grad.dtype == input.dtype,
        Runtime,
        "deform_conv2d: expected a gradient of sizes {wanted:?}, got {:?}",
        grad.sizes.as_slice()
    );
    let grad = as_contiguous(call, grad)?;
    let new = |t: &View| call.empty(input.dtype, &t.sizes);
    let (grad_input, grad_weight, grad_offset, grad_mask) = (new(input)?, new(weight)?, new(offset)?, new(mask)?);
    let gradients = Gradients { input: &grad_input, weight: &grad_weight, offset: &grad_offset, mask: &grad_mask };
    c.gradients(call, &grad, &gradients)?;
    let grad_bias = sum_new(call, &grad, Axes::of_dims(&[0, 2, 3], 4, false))?;
    for result in [grad_input, grad_weight, grad_offset, grad_mask, grad_bias] {
        call.ret(result);
    }
    Ok(())
}
