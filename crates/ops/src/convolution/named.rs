//! The convolutions that PyTorch calls by a name of their own: the same kernels under other argument lists.

use super::geometry::Arguments;
use super::{backward, forward};
use crate::check;
use crate::movement::copy;
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::tensor::Tensor;

/// The named overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_slow_conv2d_forward", |c| named(c, Kind::Plain, None)),
    op("aten::_slow_conv2d_forward.output", |c| named(c, Kind::Plain, Some(6))),
    op("aten::_slow_conv2d_backward.output_mask", |c| {
        let wanted = c.flags(6)?;
        slow_backward(c, wanted)
    }),
    op("aten::_slow_conv2d_backward.grad_input", slow_backward_out),
    op("aten::slow_conv_dilated2d", |c| named(c, Kind::Dilated, None)),
    op("aten::slow_conv_dilated3d", |c| named(c, Kind::Dilated, None)),
    op("aten::slow_conv3d_forward", |c| named(c, Kind::Plain, None)),
    op("aten::slow_conv3d_forward.output", |c| named(c, Kind::Plain, Some(6))),
    op("aten::slow_conv_transpose2d", |c| named(c, Kind::Transposed, None)),
    op("aten::slow_conv_transpose2d.out", |c| named(c, Kind::Transposed, Some(8))),
    op("aten::slow_conv_transpose3d", |c| named(c, Kind::Transposed, None)),
    op("aten::slow_conv_transpose3d.out", |c| named(c, Kind::Transposed, Some(8))),
    op("aten::_conv_depthwise2d", |c| named(c, Kind::Depthwise, None)),
    op("aten::_conv_depthwise2d.out", |c| named(c, Kind::Depthwise, Some(7))),
    op("aten::conv_depthwise3d", |c| named(c, Kind::Depthwise, None)),
];

/// What follows `(self, weight, kernel_size, bias, stride, padding`.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Plain,
    /// `dilation`
    Dilated,
    /// `dilation`; every channel is a group.
    Depthwise,
    /// `output_padding, dilation`
    Transposed,
}

fn named(call: &mut Call, kind: Kind, out: Option<usize>) -> Result<()> {
    let (input, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.opt_tensor(3)?);
    check_kernel(call, weight, call.ints(2)?)?;
    let single = input.dim() + 1 == weight.dim();
    let batched = if single { unsqueeze(input) } else { input.clone() };
    let arguments = Arguments {
        stride: call.ints(4)?,
        padding: call.ints(5)?,
        dilation: match kind {
            Kind::Plain => &[1],
            Kind::Dilated | Kind::Depthwise => call.ints(6)?,
            Kind::Transposed => call.ints(7)?,
        },
        transposed: kind == Kind::Transposed,
        output_padding: if kind == Kind::Transposed { call.ints(6)? } else { &[0] },
        groups: if kind == Kind::Depthwise { batched.sizes.get(1).copied().unwrap_or(1) } else { 1 },
    };
    structured::check_dtype(call, out, input.dtype)?;
    let mut result = forward(call, &batched, weight, bias, &arguments)?;
    if single {
        result = call.host.view(&result, &result.as_strided(&result.sizes[1..], &result.strides[1..], 0))?;
    }
    deliver(call, result, out)
}

/// Returns a result, by way of its `out=` argument if there is one.
fn deliver(call: &mut Call, result: Tensor, out: Option<usize>) -> Result<()> {
    let out = match out {
        None => result,
        Some(_) => {
            let out = structured::out(call, out, result.dtype, &result.sizes)?;
            copy::device_copy(call, &result, &out)?;
            out
        }
    };
    call.ret(out);
    Ok(())
}

fn unsqueeze(t: &Tensor) -> Tensor {
    let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
    sizes.insert(0, 1);
    strides.insert(0, t.numel().max(1));
    t.as_strided(&sizes, &strides, 0)
}

fn check_kernel(call: &Call, weight: &Tensor, kernel: &[i64]) -> Result<()> {
    let given = weight.sizes.get(2..).unwrap_or_default();
    check!(
        given.iter().enumerate().all(|(d, n)| kernel.get(d).or(kernel.first()) == Some(n)),
        Runtime,
        "{}: kernel_size {kernel:?} does not match the weight's size {:?}",
        call.name,
        weight.sizes.as_slice()
    );
    Ok(())
}

/// The gradients of `_slow_conv2d_backward(grad_output, self, weight, kernel_size, stride, padding, ..)`.
fn slow_gradients(call: &Call, wanted: &[u8]) -> Result<[Option<Tensor>; 3]> {
    let tensors = [call.tensor(0)?, call.tensor(1)?, call.tensor(2)?];
    check_kernel(call, tensors[2], call.ints(3)?)?;
    let arguments = Arguments {
        stride: call.ints(4)?,
        padding: call.ints(5)?,
        dilation: &[1],
        transposed: false,
        output_padding: &[0],
        groups: 1,
    };
    backward(call, tensors, &arguments, wanted)
}

fn slow_backward(call: &mut Call, wanted: &[u8]) -> Result<()> {
    for t in slow_gradients(call, wanted)? {
        call.ret_value(t.map_or(Ret::None, Ret::Tensor));
    }
    Ok(())
}

/// The overload with a tensor for every gradient.
fn slow_backward_out(call: &mut Call) -> Result<()> {
    let gradients = slow_gradients(call, &[1, 1, 1])?;
    for (i, t) in gradients.into_iter().flatten().enumerate() {
        deliver(call, t, Some(6 + i))?;
    }
    Ok(())
}
