//! The transform of images' tiles: of the 4x4 pixels that the windows of 2x2 results read, or of
//! the gradient of 2x2 results.

use crate::context::Context;
use crate::convolution::winograd::range;
use crate::convolution::winograd::tiles::{Grid, TileSite, Tiles};
use crate::convolution::winograd::transforms::{POINTS, along_both, gradient, input};
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{I32, ReadRange, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::{Builder, DType, Pointer, Value};
use std::array::from_fn;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is transformed.
    pub side: TransformTarget,
    /// Channels are the innermost dimension in memory.
    pub last: bool,
}

/// What is transformed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransformTarget {
    /// The image that windows read.
    Input,
    /// The gradient of results.
    Gradient,
}

parameters! {
    /// A transform of tiles.
    pub Spec as s => Arguments, Parameters {
        /// Matrices of transformed numbers, `[point, channel, tile]` or `[point, tile, channel]`.
        out: Output = DType::F32,
        /// The image, from the first one on.
        source: ReadRange = DType::F32,
        /// A flag that is set if a number is out of the transforms' range.
        found: WriteRange = DType::U32,
        /// The tiles.
        grid: Grid = s.last,
        /// Row and column of a tile's first pixel, relative to its first result.
        offset: Option<[I32; 2]> = (s.side == TransformTarget::Input).then_some(()),
    }
}

/// Enqueues the transform of `tiles` into `out`. A tile's pixels begin `offset` pixels from its
/// results. Pixels outside of the image are 0.
pub fn run(cx: &Context, tiles: &Tiles, offset: Option<[i32; 2]>, out: &View, found: AddressRange) -> Result<()> {
    let side = if offset.is_some() { TransformTarget::Input } else { TransformTarget::Gradient };
    let spec = Spec { side, last: tiles.last() };
    let arguments = Arguments { out, source: tiles.range(), found, grid: tiles, offset };
    cx.run_threads(&spec, &arguments, tiles.elements() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.side {
            TransformTarget::Input => "winograd input",
            TransformTarget::Gradient => "winograd gradient",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { out, source, found, grid, offset } = p;
        grid.run(b, |site| {
            let plane = site.plane(source);
            let offset = |d: usize| offset.map(|offset| offset[d]);
            let transformed: [[Value; POINTS]; POINTS] = match self.side {
                TransformTarget::Input => {
                    let tile: [[Value; POINTS]; POINTS] = load(&site, plane, offset);
                    range::check(b, tile.into_iter().flatten(), found);
                    along_both(tile, input)
                }
                TransformTarget::Gradient => {
                    let tile: [[Value; 2]; 2] = load(&site, plane, offset);
                    range::check(b, tile.into_iter().flatten(), found);
                    along_both(tile, gradient)
                }
            };
            for (point, &x) in (0u32..).zip(transformed.iter().flatten()) {
                out.store(grid.matrix() * point + site.index, x);
            }
        });
    }
}

/// Loads a tile's pixels; 0 outside of the image.
fn load<'b, const N: usize>(
    site: &TileSite<'b>,
    plane: Pointer<'b>,
    offset: impl Fn(usize) -> Option<Value<'b>>,
) -> [[Value<'b>; N]; N] {
    let [rows, columns]: [[_; N]; 2] = from_fn(|d| from_fn(|i| site.along(d, i, offset(d))));
    rows.map(|(row, above)| {
        columns.map(|(column, beside)| {
            let inside = above & beside & site.in_range;
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
        for side in [TransformTarget::Input, TransformTarget::Gradient] {
            for last in [false, true] {
                accepted(&Spec { side, last }.build());
            }
        }
    }
}
