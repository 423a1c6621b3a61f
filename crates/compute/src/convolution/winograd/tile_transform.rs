//! The transform of images' tiles: of four by four pixels that the windows of two by two results
//! see, or of the gradient of two by two results.

use crate::context::Context;
use crate::convolution::winograd::range;
use crate::convolution::winograd::tiles::{Grid, Site, Tiles};
use crate::convolution::winograd::transforms::{POINTS, both, gradient, input};
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{I32, ReadRange, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::{Builder, DType, Pointer, Value};
use std::array::from_fn;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is transformed.
    pub side: Side,
    /// Channels are the fastest in memory.
    pub last: bool,
}

/// What is transformed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// What windows see.
    Input,
    /// The gradient of results.
    Gradient,
}

parameters! {
    /// A transform of tiles.
    pub Spec as s => Arguments, Parameters {
        /// Matrices of transformed numbers, `[point, channel, tile]` or `[point, tile, channel]`.
        out: Output = DType::F32,
        /// The first image.
        source: ReadRange = DType::F32,
        /// A word that is set where a number may not go through.
        found: WriteRange = DType::U32,
        /// The tiles.
        grid: Grid = s.last,
        /// Row and column of a tile's first pixel, from those of its first result.
        offset: Option<[I32; 2]> = (s.side == Side::Input).then_some(()),
    }
}

/// Enqueues the transform of `tiles` into `out`, whose pixels begin at `offset` from the results.
/// What is outside of the images is 0.
pub fn run(cx: &Context, tiles: &Tiles, offset: Option<[i32; 2]>, out: &View, found: AddressRange) -> Result<()> {
    let side = if offset.is_some() { Side::Input } else { Side::Gradient };
    let spec = Spec { side, last: tiles.last() };
    let arguments = Arguments { out, source: tiles.range(), found, grid: tiles, offset };
    cx.run_threads(&spec, &arguments, tiles.elements() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.side {
            Side::Input => "winograd input",
            Side::Gradient => "winograd gradient",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { out, source, found, grid, offset } = p;
        grid.run(b, |site| {
            let plane = site.plane(source);
            let offset = |d: usize| offset.map(|offset| offset[d]);
            let transformed: [[Value; POINTS]; POINTS] = match self.side {
                Side::Input => {
                    let tile: [[Value; POINTS]; POINTS] = load(&site, plane, offset);
                    range::check(b, tile.into_iter().flatten(), found);
                    both(tile, input)
                }
                Side::Gradient => {
                    let tile: [[Value; 2]; 2] = load(&site, plane, offset);
                    range::check(b, tile.into_iter().flatten(), found);
                    both(tile, gradient)
                }
            };
            for (point, &x) in (0u32..).zip(transformed.iter().flatten()) {
                out.store(grid.matrix() * point + site.index, x);
            }
        });
    }
}

/// A tile's pixels, zeros outside of the image.
fn load<'b, const N: usize>(
    site: &Site<'b>,
    plane: Pointer<'b>,
    offset: impl Fn(usize) -> Option<Value<'b>>,
) -> [[Value<'b>; N]; N] {
    let [rows, columns]: [[_; N]; 2] = from_fn(|d| from_fn(|i| site.along(d, i, offset(d))));
    rows.map(|(row, above)| {
        columns.map(|(column, beside)| {
            let inside = above & beside & site.exists;
            inside.select(plane.load(row + column), 0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for side in [Side::Input, Side::Gradient] {
            for last in [false, true] {
                accepted(&Spec { side, last }.build());
            }
        }
    }
}
