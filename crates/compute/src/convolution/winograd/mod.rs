//! Convolutions with windows of 3 x 3 pixels by Winograd's algorithm: 16 multiplications instead of
//! 36 for every 2 x 2 results (Winograd, "Arithmetic complexity of computations", 1980; Lavin and
//! Gray, "Fast algorithms for convolutional neural networks", CVPR 2016).
//!
//! Tiles of 4 x 4 pixels and windows are [transformed](transforms) separately, so that for each of
//! 16 points the sum over channels is a matrix product; the 16 products are one batch. Another
//! transform computes the results from them. This is F(2x2, 3x3); the gradient of the weight is
//! F(3x3, 2x2), whose products are summed over the tiles of all images, and the gradient of the
//! input is a convolution with the window rotated by 180 degrees.
//!
//! It is computed in float32 without other roundings than additions have; its errors are in
//! `docs/reference/numerics.md`. Larger tiles would need fewer multiplications, F(4x4, 3x3) a
//! quarter, but are less accurate. Transforms move four times as many numbers as the images have,
//! hence [`choice`]; and `range` says for which numbers the direct product is computed instead,
//! which only the device knows.

pub mod choice;
mod filter_transform;
mod output_transform;
mod range;
mod tile_transform;
mod tiles;
mod transforms;
mod weight_transform;

pub use crate::convolution::winograd::choice::Pass;

pub use crate::convolution::winograd::choice::is_supported;

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::products;
use crate::convolution::winograd::choice::images_at_once;
use crate::convolution::winograd::tiles::{Outer, Tiles};
use crate::convolution::winograd::transforms::{TAPS, TILE_MULTIPLICATIONS};
use crate::error::{Error, Result};
use crate::matmul::epilogue::{Bias, EpilogueOperands, Output, ResultTensor};
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::movement::copy::fill_with;
use crate::scalar::Scalar;
use crate::view::View;
use dml_engine::AddressRange;
use dml_kernel::DType;

/// Computes the outer side from the inner side.
pub fn forward(cx: &Context, g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Result<()> {
    let offset = [0, 1].map(|d| -g.padding[d] as i32);
    let direct = products::forward(g, inner, weight, out, bias);
    Convolution { source: inner, weight, axes: [1, 0], offset, out, bias }.run(cx, direct)
}

/// Computes the inner side from the outer side, with the window rotated by 180 degrees.
pub fn backward_data(
    cx: &Context,
    g: &Geometry,
    outer: &View,
    weight: &View,
    out: &View,
    bias: Option<&View>,
) -> Result<()> {
    let offset = [0, 1].map(|d| g.padding[d] as i32 - (TAPS as i32 - 1));
    let direct = products::backward_data(g, outer, weight, out, bias);
    Convolution { source: outer, weight, axes: [0, 1], offset, out, bias }.run(cx, direct)
}

/// A convolution from one side to the other.
struct Convolution<'t> {
    source: &'t View,
    weight: &'t View,
    /// The weight's dimensions of the channels that are read and written.
    axes: [usize; 2],
    /// Offset from a result to the first pixel of its window.
    offset: [i32; 2],
    out: &'t View,
    bias: Option<&'t View>,
}

impl Convolution<'_> {
    fn run(&self, cx: &Context, mut direct: Problem) -> Result<()> {
        let Convolution { source, weight, axes, offset, out, bias } = *self;
        let [batch, channels] = [out.sizes[0], out.sizes[1]];
        let all = Tiles { tensor: source, images: [0, batch], count: Tiles::of(&out.sizes[2..]) };
        let images = at_once(cx, &all, &all.over(out), weight)?;
        let words = range_flags(cx)?;
        let filters = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, source.sizes[1], channels])?;
        filter_transform::run(cx, weight, axes, &filters, words[0])?;
        let filter_step = [source.sizes[1], channels].iter().product();
        let filter = || Source::strided(&filters, [channels, source.sizes[1]], [1, channels], filter_step);
        let first = Tiles { images: [0, images], ..all };
        let transformed = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, first.elements()])?;
        let products = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, first.over(out).elements()])?;
        for begin in (0..batch).step_by(images as usize) {
            let read = Tiles { images: [begin, images.min(batch - begin)], ..first };
            let output_tiles = read.over(out);
            tile_transform::run(cx, &read, Some(offset), &transformed, words[1])?;
            let seen = read.operand(&transformed, Outer::Tiles);
            let (tiles, k) = (output_tiles.padded(), read.channels());
            let [of_channel, of_tile] = output_tiles.strides();
            let (size, a, b, [m, n]) = if output_tiles.last() {
                ([TILE_MULTIPLICATIONS, tiles, channels, k], seen, filter(), [of_tile, of_channel])
            } else {
                ([TILE_MULTIPLICATIONS, channels, tiles, k], filter(), seen, [of_channel, of_tile])
            };
            let finish = sums(&products, [output_tiles.elements(), m, n], false);
            Problem { size, a, b, finish }.run(cx)?;
            output_transform::run(cx, &products, &output_tiles, bias)?;
        }
        direct.run_if_lost(cx, words)
    }
}

/// Computes the weight's gradient.
pub fn backward_weight(cx: &Context, g: &Geometry, inner: &View, outer: &View, out: &View) -> Result<()> {
    let offset = [0, 1].map(|d| -g.padding[d] as i32);
    let mut direct = products::backward_weight(g, inner, outer, out);
    let all = Tiles { tensor: inner, images: [0, g.batch], count: Tiles::of(&outer.sizes[2..]) };
    let images = at_once(cx, &all, &all.over(outer), out)?;
    let words = range_flags(cx)?;
    let [rows, columns] = [outer.sizes[1], inner.sizes[1]];
    let first = Tiles { images: [0, images], ..all };
    let seen = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, first.elements()])?;
    let gradients = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, first.over(outer).elements()])?;
    let products = cx.empty(DType::F32, &[TILE_MULTIPLICATIONS, rows, columns])?;
    for begin in (0..g.batch).step_by(images as usize) {
        let of_inner = Tiles { images: [begin, images.min(g.batch - begin)], ..first };
        let of_outer = of_inner.over(outer);
        tile_transform::run(cx, &of_inner, Some(offset), &seen, words[0])?;
        tile_transform::run(cx, &of_outer, None, &gradients, words[1])?;
        let (a, b) = (of_outer.operand(&gradients, Outer::Channels), of_inner.operand(&seen, Outer::Channels));
        let finish = sums(&products, [rows * columns, columns, 1], begin > 0);
        Problem { size: [TILE_MULTIPLICATIONS, rows, columns, of_outer.padded()], a, b, finish }.run(cx)?;
    }
    weight_transform::run(cx, &products, out)?;
    direct.run_if_lost(cx, words)
}

/// The number of images that are transformed at a time.
fn at_once(cx: &Context, read: &Tiles, other: &Tiles, weight: &View) -> Result<i64> {
    let number = TILE_MULTIPLICATIONS * DType::F32.bytes() as i64;
    let tiles = read.count[0] * read.count[1];
    let image = number * (read.channels() + other.channels()) * tiles;
    let fixed = number * weight.sizes[0] * weight.sizes[1];
    images_at_once(read.images[1], image, fixed)
        .ok_or_else(|| Error::Invalid(format!("{}: transformed numbers of an image take too much memory", cx.name)))
}

/// Returns two cleared flags: see `range`.
fn range_flags(cx: &Context) -> Result<[AddressRange; 2]> {
    let words = cx.empty(DType::I32, &[2])?;
    fill_with(cx, &words, Scalar::Int(0))?;
    let bytes = DType::I32.bytes();
    Ok([0, 1].map(|i| AddressRange::new(words.data + i * bytes, bytes)))
}

/// The epilogue of sums that are stored to `memory`, or added to the numbers there.
fn sums(memory: &View, strides: [i64; 3], added: bool) -> EpilogueOperands {
    let bias = added.then(|| Bias { tensor: ResultTensor::new(memory.into(), strides), beta: Scalar::Int(1) });
    let out = Output { memory: memory.into(), strides, split: None };
    EpilogueOperands { out, alpha: Scalar::Int(1), bias, then: None }
}
