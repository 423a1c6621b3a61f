//! max_pool, adaptive_max_pool and fractional_max_pool, with the indices of the chosen elements.

use super::cover::Cover;
use super::{Arguments, Windows, check_image, check_not_empty, check_sizes, max_kernel, output_sizes, spatial};
use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::spatial::geometry::{batched, result, sizes_with};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::max_pool2d_with_indices", |c| forward(c, 2, false)),
    op("aten::max_pool2d_with_indices.out", |c| forward(c, 2, true)),
    op("aten::max_pool2d_with_indices_backward", |c| backward(c, 2, false)),
    op("aten::max_pool2d_with_indices_backward.grad_input", |c| backward(c, 2, true)),
    op("aten::max_pool3d_with_indices", |c| forward(c, 3, false)),
    op("aten::max_pool3d_with_indices.out", |c| forward(c, 3, true)),
    op("aten::max_pool3d_with_indices_backward", |c| backward(c, 3, false)),
    op("aten::max_pool3d_with_indices_backward.grad_input", |c| backward(c, 3, true)),
    op("aten::adaptive_max_pool2d", |c| adaptive(c, 2, false)),
    op("aten::adaptive_max_pool2d.out", |c| adaptive(c, 2, true)),
    op("aten::adaptive_max_pool2d_backward", |c| adaptive_backward(c, 2, false)),
    op("aten::adaptive_max_pool2d_backward.grad_input", |c| adaptive_backward(c, 2, true)),
    op("aten::adaptive_max_pool3d", |c| adaptive(c, 3, false)),
    op("aten::adaptive_max_pool3d.out", |c| adaptive(c, 3, true)),
    op("aten::adaptive_max_pool3d_backward", |c| adaptive_backward(c, 3, false)),
    op("aten::adaptive_max_pool3d_backward.grad_input", |c| adaptive_backward(c, 3, true)),
    op("aten::fractional_max_pool2d", |c| fractional(c, 2, false)),
    op("aten::fractional_max_pool2d.output", |c| fractional(c, 2, true)),
    op("aten::fractional_max_pool2d_backward", |c| fractional_backward(c, 2, false)),
    op("aten::fractional_max_pool2d_backward.grad_input", |c| fractional_backward(c, 2, true)),
    op("aten::fractional_max_pool3d", |c| fractional(c, 3, false)),
    op("aten::fractional_max_pool3d.output", |c| fractional(c, 3, true)),
    op("aten::fractional_max_pool3d_backward", |c| fractional_backward(c, 3, false)),
    op("aten::fractional_max_pool3d_backward.grad_input", |c| fractional_backward(c, 3, true)),
];

/// Whether `t` has a batch and its channels closest in memory.
fn last(t: &Tensor, rank: usize) -> bool {
    t.dim() == rank + 2 && is_channels_last(t)
}

/// Makes both results, of the input's shape with other spatial sizes, fills and returns them.
fn finish_forward(
    call: &mut Call,
    cover: &Cover,
    input: &Tensor,
    samples: Option<&Tensor>,
    output: &[i64],
    outs: Option<usize>,
    last: bool,
) -> Result<()> {
    let rank = output.len();
    let sizes = sizes_with(input, output);
    let out = result(call, outs, input.dtype, &sizes, last)?;
    let indices = result(call, outs.map(|i| i + 1), DType::I64, &sizes, last)?;
    let [from, to, places] = [input, &out, &indices].map(|t| batched(t, rank));
    max_kernel::forward(call, cover, &from, samples, &to, &places)?;
    call.ret(out);
    call.ret(indices);
    Ok(())
}

/// Makes the gradient of the input, fills and returns it.
fn finish_backward(
    call: &mut Call,
    cover: &Cover,
    [grad, input, indices]: [&Tensor; 3],
    rank: usize,
    out: Option<usize>,
    last: bool,
) -> Result<()> {
    check!(indices.dtype == DType::I64, Runtime, "expected scalar type Long but found {}", indices.dtype);
    check!(
        input.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::").trim_end_matches(".grad_input").replace("_with_indices", ""),
        input.dtype
    );
    let result = result(call, out, input.dtype, &input.sizes, last)?;
    let [from, places, to] = [grad, indices, &result].map(|t| batched(t, rank));
    max_kernel::backward(call, cover, &from, &places, &to)?;
    call.ret(result);
    Ok(())
}

fn check_same_dtype(input: &Tensor, grad: &Tensor, name: &str) -> Result<()> {
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `{name}` but got dtype {}",
        crate::operator::structured::type_name(input.dtype),
        crate::operator::structured::type_name(grad.dtype)
    );
    Ok(())
}

/// `(kernel_size, stride, padding, dilation, ceil_mode)` from argument `first`
fn windows(call: &Call, rank: usize, first: usize) -> Result<Windows> {
    let list = |i: usize| call.ints(first + i);
    let given = Arguments {
        kernel: list(0)?,
        stride: list(1)?,
        padding: list(2)?,
        dilation: list(3)?,
        ceil: call.flag(first + 4)?,
    };
    Windows::new(if rank == 2 { "max_pool2d" } else { "max_pool3d" }, rank, &given)
}

/// `(self, kernel_size, stride, padding, dilation, ceil_mode[, out, indices])`
fn forward(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let input = call.tensor(0)?;
    let windows = windows(call, rank, 1)?;
    check!(
        input.dim() == rank + 1 || input.dim() == rank + 2,
        Runtime,
        "non-empty {}D or {}D (batch mode) tensor expected for input",
        rank + 1,
        rank + 2
    );
    check_image("max_pool3d_with_indices_out_cpu_template", input, rank)?;
    check!(input.dtype != DType::Bool, NotImplemented, "\"max_pool{rank}d\" not implemented for 'Bool'");
    let sizes = output_sizes(input, &windows)?;
    let output = &sizes[sizes.len() - rank..];
    finish_forward(call, &Cover::Fixed(&windows), input, None, output, out.then_some(6), last(input, rank))
}

/// `(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices[, grad_input])`
fn backward(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let (grad, input, indices) = (call.tensor(0)?, call.tensor(1)?, call.tensor(7)?);
    let windows = windows(call, rank, 2)?;
    check_same_dtype(input, grad, "gradOutput")?;
    check_image("max_pool3d_with_indices_backward_out_cpu_template", input, rank)?;
    let sizes = output_sizes(input, &windows)?;
    check_sizes(grad, &sizes)?;
    check_sizes(indices, &sizes)?;
    let cover = Cover::Fixed(&windows);
    finish_backward(call, &cover, [grad, input, indices], rank, out.then_some(8), last(input, rank))
}

/// `(self, output_size[, out, indices])`
fn adaptive(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let input = call.tensor(0)?;
    let wanted = call.ints(1)?;
    let name = format!("adaptive_max_pool{rank}d");
    check!(
        input.dim() == rank + 1 || input.dim() == rank + 2,
        Runtime,
        "{name}(): Expected {}D or {}D tensor, but got: {:?}",
        rank + 1,
        rank + 2,
        input.sizes.as_slice()
    );
    check_not_empty(&name, "input", input, input.dim() - rank - 1)?;
    check!(wanted.len() == rank, Runtime, "{name}(): internal error: output_size.size() must be {rank}");
    let sizes = sizes_with(input, wanted);
    for &n in wanted {
        check!(n >= 0, Runtime, "Trying to create tensor with negative dimension {n}: {:?}", sizes.as_slice());
    }
    check!(
        input.dtype.is_float(),
        NotImplemented,
        "\"{name}{}\" not implemented for '{}'",
        if rank == 3 { "_cpu" } else { "" },
        input.dtype
    );
    // CPU keeps channels last in two dimensions only.
    let last = rank == 2 && last(input, rank);
    finish_forward(call, &Cover::Adaptive, input, None, wanted, out.then_some(2), last)
}

/// `(grad_output, self, indices[, grad_input])`
fn adaptive_backward(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let (grad, input, indices) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let what = if rank == 2 { "grad_output" } else { "gradOutput" };
    check!(
        matches!(grad.dim(), d if d == rank + 1 || d == rank + 2) && input.dim() == indices.dim(),
        Runtime,
        "expected sizes {:?} for `{what}` but got sizes {:?}",
        indices.sizes.as_slice(),
        grad.sizes.as_slice()
    );
    check_not_empty(&format!("adaptive_max_pool{rank}d_backward"), "grad_output", grad, grad.dim() - rank)?;
    check_same_dtype(input, grad, what)?;
    let lead = input.dim() - rank;
    check!(
        grad.sizes == indices.sizes && grad.sizes[..lead] == input.sizes[..lead],
        Runtime,
        "expected sizes {:?} for `{what}` but got sizes {:?}",
        indices.sizes.as_slice(),
        grad.sizes.as_slice()
    );
    let last = rank == 2 && last(input, rank);
    finish_backward(call, &Cover::Adaptive, [grad, input, indices], rank, out.then_some(3), last)
}

/// `(self, kernel_size, output_size, random_samples[, output, indices])`
fn fractional(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let (input, samples) = (call.tensor(0)?, call.tensor(3)?);
    let (kernel, output) = (call.ints(1)?, call.ints(2)?);
    let (name, three) = if rank == 2 { ("fractional_max_pool2d", "") } else { ("fractional_max_pool3d", "three ") };
    let this = if rank == 2 { "fractional_max_pool2d()" } else { "fractional_max_pool3d_out()" };
    for (what, list) in [("kernel_size", kernel), ("output_size", output)] {
        check!(list.len() == rank, Runtime, "{name}: {what} must either be a single Int or tuple of {three}Ints");
    }
    check!(
        input.dim() == rank + 1 || input.dim() == rank + 2,
        Runtime,
        "{this}: Expected {}D or {}D tensor, but got: {:?}",
        rank + 1,
        rank + 2,
        input.sizes.as_slice()
    );
    for d in input.dim() - rank - 1..input.dim() {
        check!(
            input.sizes[d] > 0,
            Runtime,
            "{this}: Expected input to have non-zero size for non-batch dimensions, but got{:?} with dimension {d} \
             being empty.",
            input.sizes.as_slice()
        );
    }
    for (d, (&size, axis)) in spatial(input, rank).iter().zip(&["time", "height", "width"][3 - rank..]).enumerate() {
        let reach = output[d] + kernel[d] - 1;
        check!(
            output[d] >= 0 && kernel[d] >= 0 && if rank == 2 { reach <= size } else { reach < size },
            Runtime,
            "{this}: pool {axis} {} too large relative to input {axis} {size}",
            kernel[d]
        );
    }
    check_samples(input, samples, rank)?;
    check!(input.dtype.is_float(), NotImplemented, "\"{name}_out_frame\" not implemented for '{}'", input.dtype);
    let cover = Cover::Fractional(kernel, samples.dtype);
    finish_forward(call, &cover, input, Some(samples), output, out.then_some(4), false)
}

/// Checks the random samples `[batch, channels, axes]`; a batch more than the input's is left alone.
fn check_samples(input: &Tensor, samples: &Tensor, rank: usize) -> Result<()> {
    check!(samples.dtype == input.dtype, Runtime, "Expect _random_samples to have the same dtype as input");
    check!(samples.dim() == 3, Runtime, "Expect _random_samples to have 3 dimensions, got {}", samples.dim());
    let batch = if input.dim() == rank + 2 { input.sizes[0] } else { 1 };
    check!(samples.sizes[0] >= batch, Runtime, "Expect _random_samples.size(0) no less then input batch size.");
    check!(
        samples.sizes[1] == input.size(-1 - rank as i64),
        Runtime,
        "Expect _random_samples.size(1) equals to input channel size."
    );
    check!(
        samples.sizes[2] == rank as i64,
        Runtime,
        "Expect _random_samples.size(2) equals to {rank}; got {}.",
        samples.sizes[2]
    );
    Ok(())
}

/// `(grad_output, self, kernel_size, output_size, indices[, grad_input])`
fn fractional_backward(call: &mut Call, rank: usize, out: bool) -> Result<()> {
    let (grad, input, indices) = (call.tensor(0)?, call.tensor(1)?, call.tensor(4)?);
    let (kernel, output) = (call.ints(2)?, call.ints(3)?);
    check!(
        matches!(input.dim(), d if d == rank + 1 || d == rank + 2) && kernel.len() == rank && output.len() == rank,
        Runtime,
        "fractional_max_pool{rank}d_backward(): expected an input of {} or {} dimensions, got {}",
        rank + 1,
        rank + 2,
        input.describe()
    );
    let expected = sizes_with(input, output);
    if rank == 2 {
        check!(grad.sizes == expected, Runtime, "fractional_max_pool2d_backward(): gradOutput sizes unexpected");
    }
    let names = &["time", "height", "width"][3 - rank..];
    for (d, axis) in (input.dim() - rank..input.dim()).zip(names) {
        check!(
            grad.dim() == input.dim() && grad.sizes[d] == expected[d],
            Runtime,
            "fractional_max_pool{rank}d_backward_out(): gradOutput {axis} unexpected"
        );
    }
    check!(
        grad.sizes == expected && indices.sizes == expected,
        Runtime,
        "fractional_max_pool{rank}d_backward(): expected a gradient and indices of shape {:?}, got {:?} and {:?}",
        expected.as_slice(),
        grad.sizes.as_slice(),
        indices.sizes.as_slice()
    );
    check!(grad.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, grad.dtype);
    let cover = Cover::Fractional(kernel, input.dtype);
    finish_backward(call, &cover, [grad, input, indices], rank, out.then_some(5), false)
}
