//! Maxima over windows, the positions of maxima, and gradients.
//!
//! Of equal elements of a window the first is its maximum; NaN is larger than any number.

use super::window::{Pooling, operator};
use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, HALF_FLOATS};
use crate::operators::common::window::Format;
use crate::require;
use dml_compute::creation::sequences::{self, Sequence};
use dml_compute::indexing::gather::gather;
use dml_compute::indexing::scatter::{self, Combined};
use dml_compute::movement::copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::combine::Combine;
use dml_compute::spatial::pooling::max_kernel;
use dml_compute::spatial::pooling::window::Windows;
use dml_compute::spatial::pooling::windows::Cover;
use dml_compute::view::memory_format;
use dml_compute::{Scalar, View};
use dml_kernel::{DType, ScalarType};

dml_compute::functions! {
    /// The position of a pixel's channel, from the pixel's, in an image of `channels` channels,
    /// plus the position of the image.
    ELEMENT_OF_PIXEL = "element_of_pixel"(pixel, channel, image, channels) => {
        (pixel.cast(ScalarType::I64) * channels + channel) + image
    };
    /// The position in a batch of an element of an image, given the position of the image.
    ELEMENT_OF_BATCH = "element_of_batch"(element, image) => element + image;
}

/// The maxima of images, and their positions: pixels of an image, int64, in the order of `out`.
fn maxima(call: &Call, windows: &Windows, images: &View, out: &View) -> Result<View> {
    let cx = call.cx();
    let strides = memory_format::strides(&out.sizes, memory_format::is_channels_last(out));
    let indices = cx.empty_strided(DType::I64, &out.sizes, &strides)?;
    max_kernel::forward(&cx, &Cover::Fixed(windows), images, None, out, &indices)?;
    Ok(indices)
}

/// [`maxima`] of which only the positions are wanted, for results of these sizes.
fn positions(call: &Call, windows: &Windows, images: &View, like: &View) -> Result<View> {
    let out = call.cx().empty_strided(images.dtype, &like.sizes, &like.strides)?;
    maxima(call, windows, images, &out)
}

/// `MaxPool` and the like.
fn forward(call: &Call, pooling: &Pooling) -> Result<()> {
    let input = call.input(0)?;
    let (windows, sizes) = pooling.windows(&input.sizes)?;
    let out = call.output(0, &sizes)?;
    if out.numel() > 0 {
        maxima(call, &windows, &pooling.format.image(&input), &pooling.format.image(&out))?;
    }
    Ok(())
}

/// `MaxPoolGrad` and the like: of the input 0, given the result's gradient 2.
fn gradient(call: &Call, pooling: &Pooling) -> Result<()> {
    let (input, grad) = (call.input(0)?, call.input(2)?);
    let (windows, sizes) = pooling.windows(&input.sizes)?;
    check_shapes(call, &sizes, &[1, 2])?;
    let out = call.output(0, &input.sizes)?;
    let [images, grad, result] = [&input, &grad, &out].map(|t| pooling.format.image(t));
    if result.numel() == 0 {
        return Ok(());
    }
    if grad.numel() == 0 {
        return Ok(copy::fill_with(&call.cx(), &result, Scalar::Int(0))?);
    }
    let indices = positions(call, &windows, &images, &grad)?;
    Ok(max_kernel::backward(&call.cx(), &Cover::Fixed(&windows), &grad, &indices, &result)?)
}

/// `MaxPoolGradGrad` and the like: the elements of 2, which has the input's shape, at the positions
/// of the input's maxima.
fn second_gradient(call: &Call, pooling: &Pooling) -> Result<()> {
    let (input, grad) = (call.input(0)?, call.input(2)?);
    let (windows, sizes) = pooling.windows(&input.sizes)?;
    check_shapes(call, &sizes, &[1])?;
    check_shapes(call, &input.sizes, &[2])?;
    let out = call.output(0, &sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let [images, grad, result] = [&input, &grad, &out].map(|t| pooling.format.image(t));
    let indices = positions(call, &windows, &images, &result)?;
    let flat = pixels_together;
    Ok(gather(&call.cx(), &flat(&grad), 2, &flat(&indices), &flat(&result))?)
}

/// Images, dense in either memory order, as `[batch, channels, pixels]`.
fn pixels_together(t: &View) -> View {
    let (pixels, step) = (t.sizes[2..].iter().product(), t.strides[t.dim() - 1]);
    t.as_strided(&[t.sizes[0], t.sizes[1], pixels], &[t.strides[0], t.strides[1], step], 0)
}

fn check_shapes(call: &Call, sizes: &[i64], inputs: &[usize]) -> Result<()> {
    for &i in inputs {
        let given = call.sizes(i)?;
        require!(given.as_slice() == sizes, "{}: input {i} has shape {given:?}, expected {sizes:?}", call.operator());
    }
    Ok(())
}

/// Operators whose last two inputs, on the host, are the windows' sizes and strides.
fn of_inputs(name: &'static str, compute: fn(&Call, &Pooling) -> Result<()>) -> Operator {
    let make = move |attributes: &Attributes| {
        let (format, padding) = Pooling::without_windows(attributes)?;
        Ok(move |call: &Call| {
            let first = call.inputs() - 2;
            let lists = [call.host_ints(first)?, call.host_ints(first + 1)?];
            compute(call, &Pooling::of(format, padding.clone(), &lists[0], &lists[1], 2)?)
        })
    };
    Operator::new(name, make).of("T", FLOATS).on_host(&["ksize", "strides"])
}

/// What the operators with positions know.
struct WithPositions {
    pooling: Pooling,
    /// Positions count from the first image of the batch, not from the element's own.
    in_batch: bool,
}

impl WithPositions {
    fn new(attributes: &Attributes) -> Result<Self> {
        let pooling = Pooling::new(attributes, 2)?;
        Ok(Self { pooling, in_batch: attributes.bool("include_batch_in_index")? })
    }

    /// The positions of the first elements of images, as a column for images of so many elements.
    fn images(call: &Call, batch: i64, elements: i64) -> Result<View> {
        let starts = call.cx().empty(DType::I64, &[batch, 1, 1, 1])?;
        let row = starts.as_strided(&[batch], &[1], 0);
        sequences::write(&call.cx(), Sequence::Arange, &[Scalar::Int(0), Scalar::Int(elements)], &row)?;
        Ok(starts)
    }

    /// Positions in the batch, int64, as one row.
    fn in_batch(&self, call: &Call, positions: &View, batch: i64, elements: i64) -> Result<View> {
        let row = |t: &View| t.as_strided(&[t.numel()], &[1], 0);
        if self.in_batch || positions.numel() == 0 {
            return Ok(row(positions));
        }
        let sum = call.cx().empty(DType::I64, &positions.sizes)?;
        let images = Self::images(call, batch, elements)?;
        let operands = [positions.clone(), images].map(Input::Tensor);
        kernel::run(&call.cx(), &ELEMENT_OF_BATCH, &[&sum], &operands, DType::I64)?;
        Ok(row(&sum))
    }
}

/// `MaxPoolWithArgmax`.
fn with_positions(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let this = WithPositions::new(attributes)?;
    Ok(move |call: &Call| {
        let cx = call.cx();
        let input = call.input(0)?;
        require!(input.numel() > 0, "tensor_in must not be empty: {:?}", input.sizes);
        let (windows, sizes) = this.pooling.windows(&input.sizes)?;
        let (out, argmax) = (call.output(0, &sizes)?, call.output(1, &sizes)?);
        if out.numel() == 0 {
            return Ok(());
        }
        let format = Format::ChannelsLast;
        let pixels = maxima(call, &windows, &format.image(&input), &format.image(&out))?;
        let (batch, channels) = (sizes[0], sizes[3]);
        let row = cx.empty(DType::I64, &[channels])?;
        sequences::write(&cx, Sequence::Arange, &[Scalar::Int(0), Scalar::Int(1)], &row)?;
        let images = if this.in_batch {
            Input::Tensor(WithPositions::images(call, batch, input.numel() / batch)?)
        } else {
            Input::Number(Scalar::Int(0), DType::I64)
        };
        let pixels = pixels.permute(&[0, 2, 3, 1]);
        let channels = Input::Number(Scalar::Int(channels), DType::I64);
        let operands = [Input::Tensor(pixels), Input::Tensor(row), images, channels];
        Ok(kernel::run(&cx, &ELEMENT_OF_PIXEL, &[&argmax], &operands, DType::I64)?)
    })
}

/// `MaxPoolGradWithArgmax`: adds each element of the gradient 1 to the position that 2 says.
fn gradient_by_positions(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let this = WithPositions::new(attributes)?;
    Ok(move |call: &Call| {
        let (input, grad, argmax) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let (_, sizes) = this.pooling.windows(&input.sizes)?;
        check_shapes(call, &sizes, &[1, 2])?;
        let out = call.output(0, &input.sizes)?;
        copy::fill_with(&call.cx(), &out, Scalar::Int(0))?;
        if grad.numel() == 0 || out.numel() == 0 {
            return Ok(());
        }
        let positions = this.in_batch(call, &argmax, sizes[0], input.numel() / sizes[0])?;
        let row = |t: &View| t.as_strided(&[t.numel()], &[1], 0);
        let how = Combined { combine: Some(Combine::Add), include_self: true };
        Ok(scatter::write(&call.cx(), &row(&out), 0, &positions, Some(row(&grad)), Scalar::Int(0), how)?)
    })
}

/// `MaxPoolGradGradWithArgmax`: the elements of 1, which has the input's shape, at the positions 2.
fn second_gradient_by_positions(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let this = WithPositions::new(attributes)?;
    Ok(move |call: &Call| {
        let (input, grad, argmax) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let (_, sizes) = this.pooling.windows(&input.sizes)?;
        check_shapes(call, &input.sizes, &[1])?;
        check_shapes(call, &sizes, &[2])?;
        let out = call.output(0, &sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let positions = this.in_batch(call, &argmax, sizes[0], input.numel() / sizes[0])?;
        let row = |t: &View| t.as_strided(&[t.numel()], &[1], 0);
        Ok(gather(&call.cx(), &row(&grad), 0, &positions, &row(&out))?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let positions: &[DType] = &[DType::I64];
    vec![
        operator("MaxPool", 2, forward, FLOATS),
        operator("MaxPoolGrad", 2, gradient, FLOATS),
        operator("MaxPoolGradGrad", 2, second_gradient, FLOATS),
        of_inputs("MaxPoolV2", forward),
        of_inputs("MaxPoolGradV2", gradient),
        of_inputs("MaxPoolGradGradV2", second_gradient),
        operator("MaxPool3D", 3, forward, HALF_FLOATS),
        operator("MaxPool3DGrad", 3, gradient, HALF_FLOATS),
        operator("MaxPool3DGradGrad", 3, second_gradient, HALF_FLOATS),
        Operator::new("MaxPoolWithArgmax", with_positions).of("Targmax", positions).of("T", FLOATS),
        Operator::new("MaxPoolGradWithArgmax", gradient_by_positions).of("T", FLOATS).of("Targmax", positions),
        Operator::new("MaxPoolGradGradWithArgmax", second_gradient_by_positions)
            .of("T", FLOATS)
            .of("Targmax", positions),
    ]
}
