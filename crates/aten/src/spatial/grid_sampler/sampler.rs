//! The operators grid_sampler_2d and grid_sampler_3d: argument checks of both directions.

use crate::operator::call::{Call, Ret};
use crate::operator::error::{Error, Result};
use crate::spatial::geometry::check_dimension;
use crate::{check, group, operators};
use dml_compute::spatial::grid_sampler::location::{Interpolation, Mode, Padding};
use dml_compute::spatial::grid_sampler::{forward, grid_gradient, input_gradient};
use dml_compute::view::{Dims, View};

operators! {
    sample(input, grid, {Sampling}; 2) {
        "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    }
    backward(grad_output, input, grid, {Sampling}, output_mask; 2) {
        "aten::grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
    }
    sample(input, grid, {Sampling}; 3) {
        "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    }
    backward(grad_output, input, grid, {Sampling}, output_mask; 3) {
        "aten::grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
    }
}

group! {
    /// How the input is read, as PyTorch numbers the choices.
    struct Sampling {
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    }
}

fn mode(sampling: Sampling, rank: usize) -> Result<Mode> {
    let Sampling { interpolation_mode, padding_mode, align_corners } = sampling;
    let bad = |what: &str, i: i64| Error::Runtime(format!("grid_sampler(): {what} {i} is not known"));
    let interpolation = match interpolation_mode {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 => Interpolation::Cubic,
        other => return Err(bad("interpolation mode", other)),
    };
    let padding = match padding_mode {
        0 => Padding::Zeros,
        1 => Padding::Border,
        2 => Padding::Reflection,
        other => return Err(bad("padding mode", other)),
    };
    Ok(Mode { interpolation, padding, align_corners, has_depth: rank == 3, backward: false })
}

/// Checks the shapes of both tensors; returns the sizes of the result.
fn check_shapes(input: &View, grid: &View, rank: usize) -> Result<Dims> {
    let (shape, points) = (input.sizes.as_slice(), grid.sizes.as_slice());
    check_dimension(input, 0)?;
    check_dimension(grid, 0)?;
    check!(
        shape[0] == points[0],
        Runtime,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes {shape:?} and grid \
         with sizes {points:?}"
    );
    check!(
        points[points.len() - 1] == shape.len() as i64 - 2,
        Runtime,
        "grid_sampler(): expected grid to have size {} in last dimension, but got grid with sizes {points:?}",
        shape.len() as i64 - 2
    );
    for (d, &n) in shape.iter().enumerate().skip(2) {
        check!(
            n > 0,
            Runtime,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {shape:?} with \
             dimension {d} being empty"
        );
    }
    let dim = rank + 2;
    check!(
        shape.len() == dim && points.len() == dim,
        Runtime,
        "grid_sampler(): expected {dim}D input and grid with same number of dimensions, but got input with sizes \
         {shape:?} and grid with sizes {points:?}"
    );
    let mut sizes = Dims::from_slice(&shape[..2]);
    sizes.extend_from_slice(&points[1..=rank]);
    Ok(sizes)
}

fn check_dtypes(input: &View, others: &[&View], name: &str) -> Result<()> {
    for t in others {
        check!(t.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, t.dtype);
    }
    check!(input.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", input.dtype);
    Ok(())
}

fn sample(call: &mut Call, input: &View, grid: &View, sampling: Sampling, rank: usize) -> Result<()> {
    let mode = mode(sampling, rank)?;
    let sizes = check_shapes(input, grid, rank)?;
    let name = if rank == 2 { "grid_sampler_2d_cpu_kernel_impl" } else { "grid_sampler3d_cpu" };
    check_dtypes(input, &[grid], name)?;
    let out = call.empty(input.dtype, &sizes)?;
    forward::run(call, mode, input, grid, &out)?;
    call.ret(out);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    grid: &View,
    sampling: Sampling,
    wanted: &[u8],
    rank: usize,
) -> Result<()> {
    let mode = Mode { backward: true, ..mode(sampling, rank)? };
    let sizes = check_shapes(input, grid, rank)?;
    check!(
        grad.sizes == sizes,
        Value,
        "grid_sampler(): expected grad_output to have sizes {:?} but got grad_output with sizes {:?}",
        sizes.as_slice(),
        grad.sizes.as_slice()
    );
    let name = if rank == 2 { "grid_sampler_2d_backward_cpu_kernel_impl" } else { "grid_sampler_3d_backward_cpu" };
    check_dtypes(input, &[grad, grid], name)?;
    let is_wanted = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let mut results = [Ret::None, Ret::None];
    if is_wanted(0) {
        let out = call.empty(input.dtype, &input.sizes)?;
        input_gradient::run(call, mode, grad, grid, &out)?;
        results[0] = Ret::Tensor(out);
    }
    if is_wanted(1) {
        let out = call.empty(grid.dtype, &grid.sizes)?;
        grid_gradient::run(call, mode, grad, input, grid, &out)?;
        results[1] = Ret::Tensor(out);
    }
    for result in results {
        call.ret_value(result);
    }
    Ok(())
}
