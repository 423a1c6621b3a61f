//! The gradient of grid sampling with respect to the grid: one invocation for each point, which
//! sums over the channels.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, Strides, index_type};
use crate::spatial::grid_sampler::forward::masked;
use crate::spatial::grid_sampler::location::{Grid, Interpolation, Location, Mode, axes_as_channels};
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Writes the gradient of the grid to `out`.
pub fn run(cx: &Context, mode: Mode, grad: &View, input: &View, grid: &View, out: &View) -> Result<()> {
    let rank = input.dim() - 2;
    let points: i64 = grid.sizes[..=rank].iter().product();
    if points == 0 {
        return Ok(());
    }
    if mode.interpolation == Interpolation::Nearest || input.numel() == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    check_loop_iterations(cx, input.sizes[1])?;
    let spec = Spec { mode, dtype: input.dtype, index: index_type(&[grad, input, grid, out]), rank };
    let arguments = Arguments {
        out,
        grad,
        input,
        grid,
        points,
        channels: input.sizes[1],
        size: &input.sizes[2..],
        grid_size: &grid.sizes[1..=rank],
        grad_strides: grad,
        in_strides: input,
        grid_strides: &axes_as_channels(grid),
        out_strides: &axes_as_channels(out),
    };
    cx.run_threads(&spec, &arguments, points as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    mode: Mode,
    dtype: DType,
    index: ScalarType,
    rank: usize,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        grad: Input = s.dtype,
        input: Input = s.dtype,
        grid: Input = s.dtype,
        points: Index = s.index,
        channels: Index = s.index,
        size: PerAxis = s.rank,
        grid_size: PerAxis = s.rank,
        grad_strides: ImageStrides = (s.index, s.rank),
        in_strides: ImageStrides = (s.index, s.rank),
        grid_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "grid_sampler_grid"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (index, rank) = (self.index, self.rank);
        let grid = Grid { pointer: p.grid, strides: p.grid_strides };
        let i = linear_id(b, index);
        b.if_(i.lt(p.points), || {
            let at = Coordinates::new(i, b.int(index, 1), &p.grid_size, false);
            let locations = grid.locate(b, self.mode, &at, &p.size);
            let sums: Vec<_> = (0..rank).map(|_| b.var(b.constant_of(self.dtype.compute(), 0.0))).collect();
            b.for_(b.int(index, 0), p.channels, 1, |channel| {
                let at_channel = Coordinates { batch: at.batch, channel, at: at.at.clone() };
                let g = p.grad.load(p.grad_strides.element(&at_channel));
                let image = p.in_strides.image(&at_channel);
                let (_, slopes) = differentiate(b, self.mode, &locations, p.input, &p.in_strides, image, b.bool(true));
                for (sum, slope) in sums.iter().zip(slopes) {
                    sum.set(sum.get() + g * slope);
                }
            });
            for (d, (sum, location)) in sums.iter().zip(&locations).enumerate() {
                // The grid's coordinates are in reverse order of axes.
                let axis = b.int(index, (rank - 1 - d) as u64);
                let at_axis = Coordinates { batch: at.batch, channel: axis, at: at.at.clone() };
                p.out.store(p.out_strides.element(&at_axis), sum.get() * location.factor);
            }
        });
    }
}

/// The interpolated value at a point, and its derivative along each axis of `locations`, which are
/// the last ones.
fn differentiate<'b>(
    b: &'b Builder,
    mode: Mode,
    locations: &[Location<'b>],
    input: Pointer<'b>,
    strides: &Strides<'b>,
    offset: Value<'b>,
    inside: Value<'b>,
) -> (Value<'b>, Vec<Value<'b>>) {
    let Some((here, inner)) = locations.split_first() else { return (masked(b, input, offset, inside), Vec::new()) };
    let d = strides.rank() - locations.len();
    let zero = b.constant_of(input.dtype().compute(), 0.0);
    let (mut value, mut slopes) = (zero, vec![zero; locations.len()]);
    for tap in &here.taps {
        let offset = offset + strides.step(d, tap.index);
        let (below, along) = differentiate(b, mode, inner, input, strides, offset, inside & tap.inside);
        let counted = |part: Value<'b>| if mode.has_depth { tap.inside.select(part, part.like(0.0)) } else { part };
        value = value + counted(tap.weight * below);
        slopes[0] = slopes[0] + counted(tap.slope * below);
        for (slope, part) in slopes[1..].iter_mut().zip(along) {
            *slope = *slope + counted(tap.weight * part);
        }
    }
    (value, slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spatial::grid_sampler::location::Padding;

    #[test]
    fn kernels_are_valid() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            for (dtype, index, rank, padding) in [
                (DType::F16, ScalarType::U32, 2, Padding::Zeros),
                (DType::F64, ScalarType::U64, 2, Padding::Reflection),
                (DType::F32, ScalarType::U32, 3, Padding::Border),
            ] {
                let mode = Mode { interpolation, padding, align_corners: true, has_depth: false, backward: true };
                crate::primitives::validate::accepted(&Spec { mode, dtype, index, rank }.build());
            }
        }
    }
}
