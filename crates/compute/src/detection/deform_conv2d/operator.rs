//! A deformable convolution and its gradients: matrix products with the columns of sampled pixels.

use crate::context::Context;
use crate::detection::deform_conv2d::geometry::Geometry;
use crate::detection::deform_conv2d::{columns, input_gradient, offset_gradient};
use crate::error::Result;
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::matmul::product::multiply_into;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::scalar::Scalar;
use crate::view::View;
use std::ops::Range;

/// Maximum bytes of the columns of a chunk of several images.
const MAX_COLUMNS: i64 = 1 << 25;

/// Consecutive images.
struct Chunk {
    /// Sizes of images, kernel and result.
    geometry: Geometry,
    /// Indices of the images.
    images: Range<i64>,
}

impl Chunk {
    /// The chunk's images of a contiguous tensor.
    fn of(&self, t: &View) -> View {
        let mut sizes = t.sizes.clone();
        sizes[0] = self.images.end - self.images.start;
        t.as_strided(&sizes, &t.strides, self.images.start * t.sizes[1..].iter().product::<i64>())
    }
}

/// A deformable convolution: contiguous operands of one floating dtype.
pub struct Convolution {
    /// Sizes of images, kernel and result.
    pub geometry: Geometry,
    /// Number of groups of channels.
    pub groups: i64,
    /// Number of channels of the result.
    pub results: i64,
    /// `[batch, channels, height, width]`
    pub input: View,
    /// `[results, channels / groups, height, width]` of the kernel.
    pub weight: View,
    /// `[batch, 2 * offset groups * taps, height, width]` of the result.
    pub offset: View,
    /// `[batch, offset groups * taps, height, width]` of the result.
    pub mask: Option<View>,
}

/// The gradients of the operands, of their shapes: contiguous, and written. That of a mask which
/// the convolution lacks becomes 0.
pub struct Gradients<'t> {
    /// Gradient of the images.
    pub input: &'t View,
    /// Gradient of the weight.
    pub weight: &'t View,
    /// Gradient of the offsets.
    pub offset: &'t View,
    /// Gradient of the mask.
    pub mask: &'t View,
}

impl Convolution {
    /// Writes the result, `[batch, results, height, width]`, contiguous. `bias` has one number for
    /// each channel of the result.
    pub fn run(&self, cx: &Context, bias: &View, out: &View) -> Result<()> {
        for chunk in self.chunks() {
            let columns = self.new_columns(cx, &chunk)?;
            let mask = self.mask.as_ref().map(|t| chunk.of(t));
            let (input, offset) = (chunk.of(&self.input), chunk.of(&self.offset));
            columns::run(cx, &chunk.geometry, &input, &offset, mask.as_ref(), &columns)?;
            for group in 0..self.groups {
                let target = self.group_result(out, group, &chunk);
                let (m, k) = (self.group_results(), self.group_rows());
                let (weight, columns) =
                    (self.group_weight(&self.weight, group), self.group_columns(&columns, group, &chunk));
                let bias = bias.as_strided(&target.sizes, &[0, 1, 0], group * m);
                let size = [target.sizes[0], m, target.sizes[2], k];
                let one = Scalar::Int(1);
                multiply_into(cx, &target, [&weight, &columns], one, Some((bias, one)), k, |finish| {
                    let a = Source::strided(&weight, [m, k], [k, 1], 0);
                    let b = Source::strided(&columns, [size[2], k], [1, columns.strides[0]], columns.strides[1]);
                    Ok(Problem { size, a, b, finish })
                })?;
            }
        }
        Ok(())
    }

    /// Writes the gradients, given the result's gradient, contiguous.
    pub fn gradients(&self, cx: &Context, grad: &View, gradients: &Gradients) -> Result<()> {
        if self.mask.is_none() {
            fill_with(cx, gradients.mask, Scalar::Int(0))?;
        }
        if self.geometry.batch == 0 {
            fill_with(cx, gradients.weight, Scalar::Int(0))?;
        }
        for chunk in self.chunks() {
            let columns = self.new_columns(cx, &chunk)?;
            let (input, offset) = (chunk.of(&self.input), chunk.of(&self.offset));
            let mask = self.mask.as_ref().map(|t| chunk.of(t));
            columns::run(cx, &chunk.geometry, &input, &offset, mask.as_ref(), &columns)?;
            self.weight_gradient(cx, &chunk, grad, &columns, gradients.weight)?;
            self.column_gradient(cx, &chunk, grad, &columns)?;
            let (grad_offset, grad_mask) = (chunk.of(gradients.offset), chunk.of(gradients.mask));
            let operands = offset_gradient::Operands {
                columns: &columns,
                input: &input,
                offset: &offset,
                mask: mask.as_ref(),
                grad_offset: &grad_offset,
                grad_mask: mask.is_some().then_some(&grad_mask),
            };
            offset_gradient::run(cx, &chunk.geometry, &operands)?;
            let grad_input = chunk.of(gradients.input);
            input_gradient::run(cx, &chunk.geometry, &columns, &offset, mask.as_ref(), &grad_input)?;
        }
        Ok(())
    }

    /// Adds a chunk's contribution to the gradient of the weight; the first chunk initialises it.
    fn weight_gradient(&self, cx: &Context, chunk: &Chunk, grad: &View, columns: &View, out: &View) -> Result<()> {
        for group in 0..self.groups {
            let target = self.group_weight(out, group);
            // Images and positions are the inner dimension of the product, and are to be
            // neighbours.
            let grad = as_contiguous(cx, &self.group_result(grad, group, chunk).permute(&[1, 0, 2]))?;
            let columns = self.group_columns(columns, group, chunk);
            let (m, n, k) = (self.group_results(), self.group_rows(), columns.strides[0]);
            let one = Scalar::Int(1);
            let before = (chunk.images.start > 0).then(|| (target.clone(), one));
            multiply_into(cx, &target, [&grad, &columns], one, before, k, |finish| {
                let a = Source::strided(&grad, [m, k], [k, 1], 0);
                let b = Source::strided(&columns, [n, k], [k, 1], 0);
                Ok(Problem { size: [1, m, n, k], a, b, finish })
            })?;
        }
        Ok(())
    }

    /// Overwrites the columns with their gradient.
    fn column_gradient(&self, cx: &Context, chunk: &Chunk, grad: &View, columns: &View) -> Result<()> {
        for group in 0..self.groups {
            let (weight, grad) = (self.group_weight(&self.weight, group), self.group_result(grad, group, chunk));
            let target = self.group_columns(columns, group, chunk).permute(&[1, 0, 2]);
            let (m, k) = (self.group_rows(), self.group_results());
            let size = [target.sizes[0], m, target.sizes[2], k];
            multiply_into(cx, &target, [&weight, &grad], Scalar::Int(1), None, k, |finish| {
                let a = Source::strided(&weight, [m, k], [1, m], 0);
                let b = Source::strided(&grad, [size[2], k], [1, grad.strides[1]], grad.strides[0]);
                Ok(Problem { size, a, b, finish })
            })?;
        }
        Ok(())
    }

    /// The images in chunks whose columns fit into the memory limit.
    fn chunks(&self) -> impl Iterator<Item = Chunk> + use<> {
        let g = self.geometry;
        let image = g.channels * g.taps() * g.positions() * self.input.element_size() as i64;
        let most = (MAX_COLUMNS / image.max(1)).clamp(1, g.batch.max(1));
        (0..g.batch).step_by(most as usize).map(move |first| {
            let images = first..(first + most).min(g.batch);
            Chunk { geometry: Geometry { batch: images.end - images.start, ..g }, images }
        })
    }

    /// Number of rows of the column matrix for a group of channels.
    fn group_rows(&self) -> i64 {
        self.weight.sizes[1] * self.geometry.taps()
    }

    /// Number of the result's channels in a group.
    fn group_results(&self) -> i64 {
        self.results / self.groups
    }

    /// The weight of a group, `[results, rows]`.
    fn group_weight(&self, of: &View, group: i64) -> View {
        let (m, k) = (self.group_results(), self.group_rows());
        of.as_strided(&[m, k], &[k, 1], group * m * k)
    }

    /// A group's rows of the columns of a chunk, `[rows, images, positions]`.
    fn group_columns(&self, of: &View, group: i64, chunk: &Chunk) -> View {
        let (k, row) = (self.group_rows(), chunk.geometry.batch * self.geometry.positions());
        let sizes = [k, chunk.geometry.batch, self.geometry.positions()];
        of.as_strided(&sizes, &[row, self.geometry.positions(), 1], group * k * row)
    }

    /// A group's channels of a tensor of the result's shape, for the images of a chunk:
    /// `[images, results, positions]`.
    fn group_result(&self, of: &View, group: i64, chunk: &Chunk) -> View {
        let (m, n) = (self.group_results(), self.geometry.positions());
        let first = (chunk.images.start * self.results + group * m) * n;
        of.as_strided(&[chunk.geometry.batch, m, n], &[self.results * n, n, 1], first)
    }

    /// Allocates the columns of a chunk.
    fn new_columns(&self, cx: &Context, chunk: &Chunk) -> Result<View> {
        let g = &chunk.geometry;
        cx.empty(self.input.dtype, &[g.channels * g.taps(), g.batch, g.positions()])
    }
}
