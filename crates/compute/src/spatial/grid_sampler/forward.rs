//! The forward kernel: one invocation for each element of the result.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, Strides, index_type};
use crate::spatial::grid_sampler::location::{Grid, Location, Mode, axes_as_channels};
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

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
        input: Input = s.dtype,
        grid: Input = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        size: PerAxis = s.rank,
        /// Points of the grid along each axis.
        points: PerAxis = s.rank,
        in_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
        grid_strides: ImageStrides = (s.index, s.rank),
    }
}

/// Writes the samples of `input` at the points of `grid` to `out`.
pub fn run(cx: &Context, mode: Mode, input: &View, grid: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let spec = Spec { mode, dtype: input.dtype, index: index_type(&[input, grid, out]), rank: input.dim() - 2 };
    let arguments = Arguments {
        out,
        input,
        grid,
        numel: out.numel(),
        channels: out.sizes[1],
        size: &input.sizes[2..],
        points: &out.sizes[2..],
        in_strides: input,
        out_strides: out,
        grid_strides: &axes_as_channels(grid),
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "grid_sampler"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let grid = Grid { pointer: p.grid, strides: p.grid_strides };
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &p.points, false);
            let locations = grid.locate(b, self.mode, &at, &p.size);
            let image = p.in_strides.image(&at);
            let value = interpolate(b, self.mode, &locations, p.input, &p.in_strides, image, b.bool(true));
            p.out.store(p.out_strides.element(&at), value);
        });
    }
}

/// The interpolated value at a point, over the axes of `locations`, which are the last ones.
fn interpolate<'b>(
    b: &'b Builder,
    mode: Mode,
    locations: &[Location<'b>],
    input: Pointer<'b>,
    strides: &Strides<'b>,
    offset: Value<'b>,
    inside: Value<'b>,
) -> Value<'b> {
    let Some((here, inner)) = locations.split_first() else { return masked(b, input, offset, inside) };
    let d = strides.rank() - locations.len();
    let parts = here.taps.iter().map(|tap| {
        let offset = offset + strides.step(d, tap.index);
        let part = tap.weight * interpolate(b, mode, inner, input, strides, offset, inside & tap.inside);
        if mode.has_depth { tap.inside.select(part, part.like(0.0)) } else { part }
    });
    // At least one element is read.
    parts.reduce(|a, b| a + b).unwrap_or(offset)
}

/// The element at `offset`; 0 if it is not `inside`.
pub fn masked<'b>(b: &'b Builder, input: Pointer<'b>, offset: Value<'b>, inside: Value<'b>) -> Value<'b> {
    let value = b.var(b.constant_of(input.dtype().compute(), 0.0));
    b.if_(inside, || value.set(input.load(offset)));
    value.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spatial::grid_sampler::location::{Interpolation, Padding};

    #[test]
    fn kernels_are_valid() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            for padding in [Padding::Zeros, Padding::Border, Padding::Reflection] {
                for (dtype, index, rank) in [(DType::BF16, ScalarType::U32, 2), (DType::F64, ScalarType::U64, 2)] {
                    let mode = Mode {
                        interpolation,
                        padding,
                        align_corners: rank == 2,
                        has_depth: rank == 3,
                        backward: false,
                    };
                    crate::primitives::validate::accepted(&Spec { mode, dtype, index, rank }.build());
                }
                let mode = Mode { interpolation, padding, align_corners: false, has_depth: true, backward: false };
                crate::primitives::validate::accepted(
                    &Spec { mode, dtype: DType::F32, index: ScalarType::U32, rank: 3 }.build(),
                );
            }
        }
    }
}
