//! The kernel that samples: one invocation an element of the result.

use super::location::{Grid, Location, Mode};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::spatial::geometry::{Place, Strides, axis_params, index_type, pass_axes, pass_strides};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};

/// Writes the samples of `input` at the points of `grid` to `out`.
pub fn run(call: &Call, mode: Mode, input: &Tensor, grid: &Tensor, out: &Tensor) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (dtype, index, rank) = (input.dtype, index_type(&[input, grid, out]), input.dim() - 2);
    let key = [dtype as u32, mode.code(), index.bytes(), rank as u32, 0, 0];
    let kernel = call.kernel("grid_sampler", key, || build(mode, dtype, index, rank))?;
    let mut launcher = call.launch(kernel).write(out).read(input).read(grid);
    launcher = launcher.index(index, out.numel()).index(index, out.sizes[1]);
    launcher = pass_axes(pass_axes(launcher, &input.sizes[2..]), &out.sizes[2..]);
    launcher = pass_strides(pass_strides(launcher, index, input), index, out);
    pass_grid(launcher, index, grid).threads(out.numel() as u64)
}

/// Passes the grid's strides as those of a tensor with the axes as channels.
pub fn pass_grid<'c, 'a>(launcher: Launcher<'c, 'a>, index: Scalar, grid: &Tensor) -> Launcher<'c, 'a> {
    let last = grid.dim() - 1;
    let order: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
    pass_strides(launcher, index, &grid.permute(&order))
}

fn build(mode: Mode, dtype: DType, index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("grid_sampler", [GROUP, 1, 1]);
    write(&b, mode, dtype, index, rank);
    b.finish()
}

fn write(b: &Builder, mode: Mode, dtype: DType, index: Scalar, rank: usize) {
    let (out, input) = (b.pointer("out", dtype), b.pointer("input", dtype));
    let pointer = b.pointer("grid", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [size, points] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let [in_strides, out_strides, strides] = [(); 3].map(|()| Strides::declare(b, index, rank));
    let grid = Grid { pointer, strides };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &points, false);
        let locations = grid.locate(b, mode, &at, &size);
        let value = interpolate(b, &locations, input, &in_strides, in_strides.image(&at), b.bool(true));
        out.store(out_strides.element(&at), value);
    });
}

/// The weighted sum of what a point reads, over the axes of `locations`, which are the last ones.
fn interpolate<'b>(
    b: &'b Builder,
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
        tap.weight * interpolate(b, inner, input, strides, offset, inside & tap.inside)
    });
    // At least one element is read.
    parts.reduce(|a, b| a + b).unwrap_or(offset)
}

/// The element at `offset`, 0 where there is none.
pub fn masked<'b>(b: &'b Builder, input: Pointer<'b>, offset: Value<'b>, inside: Value<'b>) -> Value<'b> {
    let value = b.var(b.constant_of(input.dtype().compute(), 0.0));
    b.if_(inside, || value.set(input.load(offset)));
    value.get()
}

#[cfg(test)]
mod tests {
    use super::super::location::{Interpolation, Padding};
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            for padding in [Padding::Zeros, Padding::Border, Padding::Reflection] {
                for (dtype, index, rank) in [(DType::BF16, Scalar::U32, 2), (DType::F64, Scalar::U64, 2)] {
                    let mode = Mode { interpolation, padding, align_corners: rank == 2 };
                    crate::primitives::validate::accepted(&build(mode, dtype, index, rank));
                }
                let mode = Mode { interpolation, padding, align_corners: false };
                crate::primitives::validate::accepted(&build(mode, DType::F32, Scalar::U32, 3));
            }
        }
    }
}
