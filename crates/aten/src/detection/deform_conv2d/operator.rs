//! deform_conv2d and its gradient: checks, and the products with the matrix of columns.

use crate::matmul::product;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::detection::deform_conv2d::geometry::Geometry;
use dml_compute::detection::deform_conv2d::operator::{Chunk, MAX_COLUMNS};
use dml_compute::detection::deform_conv2d::{columns, input_gradient, offset_gradient};
use dml_compute::matmul::operand::Source;
use dml_compute::matmul::problem::Problem;
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::add_up;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;

operators! {
    forward(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask) {
        "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
    }
    backward(grad, input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask) {
        "torchvision::_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    }
}

/// A checked call: contiguous operands.
struct Convolution {
    geometry: Geometry,
    groups: i64,
    /// Channels of the result.
    results: i64,
    input: View,
    weight: View,
    offset: View,
    mask: Option<View>,
}

impl Convolution {
    fn new(
        call: &Call,
        [input, weight, offset, mask, bias]: [&View; 5],
        windows: [[i64; 2]; 3],
        groups: i64,
        offset_groups: i64,
        use_mask: bool,
    ) -> Result<Convolution> {
        let g = crate::detection::deform_conv2d::geometry::checked(input, weight, windows, groups, offset_groups)?;
        for t in [weight, offset, bias].into_iter().chain(use_mask.then_some(mask)) {
            check!(t.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, t.dtype);
        }
        check!(input.dtype.is_float(), NotImplemented, "\"deformable_im2col\" not implemented for '{}'", input.dtype);
        let planes = g.offset_groups * g.taps();
        for (t, name, channels) in
            [(offset, "offset", 2 * planes)].into_iter().chain(use_mask.then_some((mask, "mask", planes)))
        {
            check!(t.dim() == 4, Runtime, "deform_conv2d: expected {name} of 4 dimensions, got {}D", t.dim());
            check!(
                t.sizes[1] == channels,
                Runtime,
                "{name}.shape[1] is not valid: got: {} expected: {channels}",
                t.sizes[1]
            );
            check!(t.sizes[0] == g.batch, Runtime, "invalid batch size of {name}");
            check!(
                t.sizes[2..] == g.result,
                Runtime,
                "{name} output dims: ({}, {}) - computed output dims: ({}, {})",
                t.sizes[2],
                t.sizes[3],
                g.result[0],
                g.result[1]
            );
        }
        check!(
            bias.numel() == weight.sizes[0],
            Runtime,
            "deform_conv2d: a bias of {} elements for {} channels",
            bias.numel(),
            weight.sizes[0]
        );
        Ok(Convolution {
            geometry: g,
            groups,
            results: weight.sizes[0],
            input: as_contiguous(call, input)?,
            weight: as_contiguous(call, weight)?,
            offset: as_contiguous(call, offset)?,
            mask: if use_mask { Some(as_contiguous(call, mask)?) } else { None },
        })
    }

    /// The images in parts whose columns fit the memory that is meant for them.
    fn chunks(&self) -> impl Iterator<Item = Chunk> + use<> {
        let g = self.geometry;
        let image = g.channels * g.taps() * g.positions() * self.input.element_size() as i64;
        let most = (MAX_COLUMNS / image.max(1)).clamp(1, g.batch.max(1));
        (0..g.batch).step_by(most as usize).map(move |first| {
            let images = first..(first + most).min(g.batch);
            Chunk { geometry: Geometry { batch: images.end - images.start, ..g }, images }
        })
    }

    /// Columns of a group of channels.
    fn group_rows(&self) -> i64 {
        self.weight.sizes[1] * self.geometry.taps()
    }

    /// Channels of the result in a group.
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

    /// New memory for the columns of a chunk.
    fn new_columns(&self, call: &Call, chunk: &Chunk) -> Result<View> {
        let g = &chunk.geometry;
        Ok(call.empty(self.input.dtype, &[g.channels * g.taps(), g.batch, g.positions()])?)
    }
}

#[allow(clippy::too_many_arguments)]
fn forward(
    call: &mut Call,
    input: &View,
    weight: &View,
    offset: &View,
    mask: &View,
    bias: &View,
    stride_h: i64,
    stride_w: i64,
    pad_h: i64,
    pad_w: i64,
    dilation_h: i64,
    dilation_w: i64,
    groups: i64,
    offset_groups: i64,
    use_mask: bool,
) -> Result<()> {
    let windows = [[stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w]];
    let c = Convolution::new(call, [input, weight, offset, mask, bias], windows, groups, offset_groups, use_mask)?;
    let bias = as_contiguous(call, bias)?;
    let g = &c.geometry;
    let out = call.empty(input.dtype, &[g.batch, c.results, g.result[0], g.result[1]])?;
    for chunk in c.chunks() {
        let columns = c.new_columns(call, &chunk)?;
        let mask = c.mask.as_ref().map(|t| chunk.of(t));
        columns::run(call, &chunk.geometry, &chunk.of(&c.input), &chunk.of(&c.offset), mask.as_ref(), &columns)?;
        for group in 0..c.groups {
            let target = c.group_result(&out, group, &chunk);
            let (m, k) = (c.group_results(), c.group_rows());
            let (weight, columns) = (c.group_weight(&c.weight, group), c.group_columns(&columns, group, &chunk));
            let bias = bias.as_strided(&target.sizes, &[0, 1, 0], group * m);
            let size = [target.sizes[0], m, target.sizes[2], k];
            let one = Scalar::Int(1);
            product::into(call, &target, [&weight, &columns], one, Some((bias, one)), k, |finish| Problem {
                size,
                a: Source::strided(&weight, [m, k], [k, 1], 0),
                b: Source::strided(&columns, [size[2], k], [1, columns.strides[0]], columns.strides[1]),
                finish,
            })?;
        }
    }
    call.ret(out);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    offset: &View,
    mask: &View,
    bias: &View,
    stride_h: i64,
    stride_w: i64,
    pad_h: i64,
    pad_w: i64,
    dilation_h: i64,
    dilation_w: i64,
    groups: i64,
    offset_groups: i64,
    use_mask: bool,
) -> Result<()> {
    let windows = [[stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w]];
    let c = Convolution::new(call, [input, weight, offset, mask, bias], windows, groups, offset_groups, use_mask)?;
    let g = &c.geometry;
    let wanted = [g.batch, c.results, g.result[0], g.result[1]];
    check!(
        grad.sizes.as_slice() == wanted && grad.dtype == input.dtype,
        Runtime,
        "deform_conv2d: expected a gradient of sizes {wanted:?}, got {:?}",
        grad.sizes.as_slice()
    );
    let grad = as_contiguous(call, grad)?;
    let new = |t: &View| call.empty(input.dtype, &t.sizes);
    let (grad_input, grad_weight, grad_offset, grad_mask) = (new(input)?, new(weight)?, new(offset)?, new(mask)?);
    if c.mask.is_none() {
        fill_with(call, &grad_mask, Scalar::Int(0))?;
    }
    if g.batch == 0 {
        fill_with(call, &grad_weight, Scalar::Int(0))?;
    }
    for chunk in c.chunks() {
        let columns = c.new_columns(call, &chunk)?;
        let (input, offset) = (chunk.of(&c.input), chunk.of(&c.offset));
        let mask = c.mask.as_ref().map(|t| chunk.of(t));
        columns::run(call, &chunk.geometry, &input, &offset, mask.as_ref(), &columns)?;
        weight_gradient(call, &c, &chunk, &grad, &columns, &grad_weight)?;
        column_gradient(call, &c, &chunk, &grad, &columns)?;
        let (chunk_offset, chunk_mask) = (chunk.of(&grad_offset), chunk.of(&grad_mask));
        let operands = offset_gradient::Operands {
            columns: &columns,
            input: &input,
            offset: &offset,
            mask: mask.as_ref(),
            grad_offset: &chunk_offset,
            grad_mask: mask.is_some().then_some(&chunk_mask),
        };
        offset_gradient::run(call, &chunk.geometry, &operands)?;
        input_gradient::run(call, &chunk.geometry, &columns, &offset, mask.as_ref(), &chunk.of(&grad_input))?;
    }
    let grad_bias = add_up(call, &grad, Axes::listed(&[0, 2, 3], 4, false))?;
    for result in [grad_input, grad_weight, grad_offset, grad_mask, grad_bias] {
        call.ret(result);
    }
    Ok(())
}

/// Adds what a chunk gives to the gradient of the weight, which the first one makes.
fn weight_gradient(call: &Call, c: &Convolution, chunk: &Chunk, grad: &View, columns: &View, out: &View) -> Result<()> {
    for group in 0..c.groups {
        let target = c.group_weight(out, group);
        // Images and positions are the inner dimension of the product, and are to be neighbours.
        let grad = as_contiguous(call, &c.group_result(grad, group, chunk).permute(&[1, 0, 2]))?;
        let columns = c.group_columns(columns, group, chunk);
        let (m, n, k) = (c.group_results(), c.group_rows(), columns.strides[0]);
        let one = Scalar::Int(1);
        let before = (chunk.images.start > 0).then(|| (target.clone(), one));
        product::into(call, &target, [&grad, &columns], one, before, k, |finish| Problem {
            size: [1, m, n, k],
            a: Source::strided(&grad, [m, k], [k, 1], 0),
            b: Source::strided(&columns, [n, k], [k, 1], 0),
            finish,
        })?;
    }
    Ok(())
}

/// Writes the gradient of the columns over them.
fn column_gradient(call: &Call, c: &Convolution, chunk: &Chunk, grad: &View, columns: &View) -> Result<()> {
    for group in 0..c.groups {
        let (weight, grad) = (c.group_weight(&c.weight, group), c.group_result(grad, group, chunk));
        let target = c.group_columns(columns, group, chunk).permute(&[1, 0, 2]);
        let (m, k) = (c.group_rows(), c.group_results());
        let size = [target.sizes[0], m, target.sizes[2], k];
        product::into(call, &target, [&weight, &grad], Scalar::Int(1), None, k, |finish| Problem {
            size,
            a: Source::strided(&weight, [m, k], [1, m], 0),
            b: Source::strided(&grad, [size[2], k], [1, grad.strides[1]], grad.strides[0]),
            finish,
        })?;
    }
    Ok(())
}
