//! max_pool, adaptive_max_pool and fractional_max_pool, with the indices of the chosen elements.

use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::spatial::geometry::result;
use crate::spatial::pooling::window::{WindowArguments, check_image, check_not_empty, check_sizes, output_sizes};
use crate::{check, operators};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::spatial::geometry::{batched, channels_last, sizes_with};
use dml_compute::spatial::pooling::max::FIRST_NON_EMPTY_DIMENSION;
use dml_compute::spatial::pooling::max_kernel;
use dml_compute::spatial::pooling::window::{Windows, adaptive_len, spatial};
use dml_compute::spatial::pooling::windows::Cover;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward(self, {WindowArguments}, outs; 2) {
        hot "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        "aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    backward(grad_output, self, {WindowArguments}, indices, out; 2) {
        hot "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        "aten::max_pool2d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, {WindowArguments}, outs; 3) {
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        "aten::max_pool3d_with_indices.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    backward(grad_output, self, {WindowArguments}, indices, out; 3) {
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        "aten::max_pool3d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    adaptive(self, output_size, outs; 2) {
        "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
        "aten::adaptive_max_pool2d.out(Tensor self, int[2] output_size, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    adaptive_backward(grad_output, self, indices, out; 2) {
        "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "aten::adaptive_max_pool2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    adaptive(self, output_size, outs; 3) {
        "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
        "aten::adaptive_max_pool3d.out(Tensor self, int[3] output_size, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    adaptive_backward(grad_output, self, indices, out; 3) {
        "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "aten::adaptive_max_pool3d_backward.grad_input(Tensor grad_output, Tensor self, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    fractional(self, kernel_size, output_size, random_samples, outs; 2) {
        "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        "aten::fractional_max_pool2d.output(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    fractional_backward(grad_output, self, kernel_size, output_size, indices, out; 2) {
        "aten::fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
        "aten::fractional_max_pool2d_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    fractional(self, kernel_size, output_size, random_samples, outs; 3) {
        "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        "aten::fractional_max_pool3d.output(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
    }
    fractional_backward(grad_output, self, kernel_size, output_size, indices, out; 3) {
        "aten::fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
        "aten::fractional_max_pool3d_backward.grad_input(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// Allocates both results, of the input's shape with other spatial sizes, fills and returns them.
fn finish_forward(
    call: &mut Call,
    cover: &Cover,
    input: &View,
    samples: Option<&View>,
    output: &[i64],
    outs: Outs,
    channels_last: bool,
) -> Result<()> {
    let rank = output.len();
    let sizes = sizes_with(input, output);
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let out = result(call, given(0), input.dtype, &sizes, channels_last)?;
    let indices = result(call, given(1), DType::I64, &sizes, channels_last)?;
    let [from, to, batched_indices] = [input, &out, &indices].map(|t| batched(t, rank));
    max_kernel::forward(call, cover, &from, samples, &to, &batched_indices)?;
    call.ret(out);
    call.ret(indices);
    Ok(())
}

/// Allocates the gradient of the input, fills and returns it.
fn finish_backward(
    call: &mut Call,
    cover: &Cover,
    [grad, input, indices]: [&View; 3],
    rank: usize,
    out: Out,
    channels_last: bool,
) -> Result<()> {
    check!(indices.dtype == DType::I64, Runtime, "expected scalar type Long but found {}", indices.dtype);
    check!(
        input.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::").trim_end_matches(".grad_input").replace("_with_indices", ""),
        input.dtype
    );
    let result = result(call, out.given(), input.dtype, &input.sizes, channels_last)?;
    let [from, batched_indices, to] = [grad, indices, &result].map(|t| batched(t, rank));
    max_kernel::backward(call, cover, &from, &batched_indices, &to)?;
    call.ret(result);
    Ok(())
}

fn check_same_dtype(input: &View, grad: &View, name: &str) -> Result<()> {
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `{name}` but got dtype {}",
        type_name(input.dtype),
        type_name(grad.dtype)
    );
    Ok(())
}

fn windows(call: &Call, given: &WindowArguments, rank: usize) -> Result<Windows> {
    let windows =
        crate::spatial::pooling::window::checked(if rank == 2 { "max_pool2d" } else { "max_pool3d" }, rank, given)?;
    check_loop_iterations(call, windows.elements())?;
    Ok(windows)
}

fn forward(call: &mut Call, input: &View, given: WindowArguments, outs: Outs, rank: usize) -> Result<()> {
    let windows = windows(call, &given, rank)?;
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
    finish_forward(call, &Cover::Fixed(&windows), input, None, output, outs, channels_last(input, rank))
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    given: WindowArguments,
    indices: &View,
    out: Out,
    rank: usize,
) -> Result<()> {
    let windows = windows(call, &given, rank)?;
    check_same_dtype(input, grad, "gradOutput")?;
    check_image("max_pool3d_with_indices_backward_out_cpu_template", input, rank)?;
    let sizes = output_sizes(input, &windows)?;
    check_sizes(grad, &sizes)?;
    check_sizes(indices, &sizes)?;
    let cover = Cover::Fixed(&windows);
    finish_backward(call, &cover, [grad, input, indices], rank, out, channels_last(input, rank))
}

fn adaptive(call: &mut Call, input: &View, wanted: &[i64], outs: Outs, rank: usize) -> Result<()> {
    let name = format!("adaptive_max_pool{rank}d");
    check!(
        input.dim() == rank + 1 || input.dim() == rank + 2,
        Runtime,
        "{name}(): Expected {}D or {}D tensor, but got: {:?}",
        rank + 1,
        rank + 2,
        input.sizes.as_slice()
    );
    check_not_empty(&name, "input", input, FIRST_NON_EMPTY_DIMENSION)?;
    check!(wanted.len() == rank, Runtime, "{name}(): internal error: output_size.size() must be {rank}");
    check_loop_iterations(call, adaptive_len(spatial(input, rank), wanted))?;
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
    // The CPU preserves channels last in two dimensions only.
    let last = rank == 2 && channels_last(input, rank);
    let cover = Cover::adaptive(call, spatial(input, rank), wanted);
    finish_forward(call, &cover, input, None, wanted, outs, last)
}

fn adaptive_backward(call: &mut Call, grad: &View, input: &View, indices: &View, out: Out, rank: usize) -> Result<()> {
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
    check_loop_iterations(call, adaptive_len(spatial(grad, rank), spatial(input, rank)))?;
    let last = rank == 2 && channels_last(input, rank);
    let cover = Cover::adaptive(call, spatial(input, rank), spatial(grad, rank));
    finish_backward(call, &cover, [grad, input, indices], rank, out, last)
}

fn fractional(
    call: &mut Call,
    input: &View,
    kernel: &[i64],
    output: &[i64],
    samples: &View,
    outs: Outs,
    rank: usize,
) -> Result<()> {
    check_loop_iterations(call, kernel.iter().product())?;
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
    for d in FIRST_NON_EMPTY_DIMENSION..input.dim() {
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
    let cover = Cover::fractional(call, kernel, [spatial(input, rank), output], samples.dtype);
    finish_forward(call, &cover, input, Some(samples), output, outs, false)
}

/// Checks the random samples `[batch, channels, axes]`; a batch larger than the input's is
/// accepted.
fn check_samples(input: &View, samples: &View, rank: usize) -> Result<()> {
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

fn fractional_backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    kernel: &[i64],
    output: &[i64],
    indices: &View,
    out: Out,
    rank: usize,
) -> Result<()> {
    check_loop_iterations(call, kernel.iter().product())?;
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
    let cover = Cover::fractional(call, kernel, [spatial(input, rank), spatial(grad, rank)], input.dtype);
    finish_backward(call, &cover, [grad, input, indices], rank, out, false)
}
