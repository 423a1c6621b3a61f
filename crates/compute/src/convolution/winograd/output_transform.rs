//! The transform of products into results: 4x4 numbers become 2x2 results, to which the bias is
//! added.

use crate::context::Context;
use crate::convolution::winograd::tiles::{Grid, Tiles};
use crate::convolution::winograd::transforms::{POINTS, along_both, output};
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::view::View;
use dml_engine::interface::{U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Value};
use std::array::from_fn;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Channels are the innermost dimension in memory.
    pub last: bool,
    /// Whether a bias is added.
    pub bias: bool,
    /// Either both results of a row are in range or neither, and both are stored in one access.
    pub pairs: bool,
}

parameters! {
    /// A transform of products.
    pub Spec as s => Arguments, Parameters {
        /// The result, from the first image on.
        out: WriteRange = DType::F32,
        /// Matrices of products, `[point, channel, tile]` or `[point, tile, channel]`.
        products: Input = DType::F32,
        /// The bias that is added.
        bias: Option<Input> = s.bias.then_some(DType::F32),
        /// Stride of the bias.
        bias_step: Option<U32> = s.bias.then_some(()),
        /// The tiles.
        grid: Grid = s.last,
    }
}

/// Enqueues the transform of `products` into the tensor of `tiles`, plus `bias`.
pub fn run(cx: &Context, products: &View, tiles: &Tiles, bias: Option<&View>) -> Result<()> {
    let out = tiles.tensor;
    let even = |x: i64| x % 2 == 0;
    let pairs = out.strides[3] == 1
        && even(out.sizes[3])
        && [0, 1, 2].iter().all(|&d| even(out.strides[d]))
        && out.data.is_multiple_of(8);
    let spec = Spec { last: tiles.last(), bias: bias.is_some(), pairs };
    let bias_step = bias.map(|bias| bias.strides[0] as u32);
    let arguments = Arguments { out: tiles.range(), products, bias, bias_step, grid: tiles };
    cx.run_threads(&spec, &arguments, tiles.elements() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "winograd output"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { out, products, bias, bias_step, grid } = p;
        grid.run(b, |site| {
            let tile: [[Value; POINTS]; POINTS] =
                from_fn(|i| from_fn(|j| products.load(grid.matrix() * (i * POINTS + j) as u32 + site.index)));
            let mut results = along_both(tile, output);
            if let Some((bias, step)) = bias.zip(bias_step) {
                let bias = bias.load(site.channel * step);
                results = results.map(|row| row.map(|x| x + bias));
            }
            let plane = site.plane(out);
            for (i, row) in results.into_iter().enumerate() {
                let (above, inside) = site.along(0, i, None);
                b.if_(inside & site.in_range, || {
                    if self.pairs {
                        let (column, _) = site.along(1, 0, None);
                        return plane.store_chunk((above + column) >> 1, &row);
                    }
                    for (j, x) in row.into_iter().enumerate() {
                        let (column, inside) = site.along(1, j, None);
                        b.if_(inside, || plane.store(above + column, x));
                    }
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for [last, bias, pairs] in [[false; 3], [true, true, false], [false, true, true]] {
            accepted(&Spec { last, bias, pairs }.build());
        }
    }
}
