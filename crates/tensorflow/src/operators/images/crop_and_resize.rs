//! Crops of images at boxes, resampled to one size, and gradients.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::detection::crop_and_resize::{Boxes, Method, box_gradient, crop, image_gradient};
use dml_compute::movement::copy;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

fn method(attributes: &Attributes) -> Result<Method> {
    match attributes.string("method")?.as_str() {
        "bilinear" => Ok(Method::Bilinear),
        "nearest" => Ok(Method::Nearest),
        other => Err(Error::InvalidArgument(format!("method must be 'bilinear' or 'nearest': {other}"))),
    }
}

/// Inputs 1 and 2, or others, are boxes and the indices of their images.
fn checked(boxes: &View, images: &View) -> Result<i64> {
    require!(boxes.dim() == 2 && boxes.sizes[1] == 4, "boxes must be 2-D with 4 columns: {:?}", boxes.sizes);
    let count = boxes.sizes[0];
    require!(images.sizes.as_slice() == [count], "box_index has incompatible shape: {:?}", images.sizes);
    Ok(count)
}

/// `CropAndResize`.
fn forward(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let (method, outside) = (method(attributes)?, attributes.float("extrapolation_value")?);
    Ok(move |call: &Call| {
        let [image, corners, images] = [call.input(0)?, call.input(1)?, call.input(2)?];
        let size = call.host_ints(3)?;
        require!(image.dim() == 4, "input image must be 4-D: {:?}", image.sizes);
        require!(image.sizes[1] > 0 && image.sizes[2] > 0, "image dimensions must be positive: {:?}", image.sizes);
        let count = checked(&corners, &images)?;
        require!(size.len() == 2, "crop_size must have two elements: {size:?}");
        require!(size.iter().all(|&n| n > 0), "crop dimensions must be positive: {size:?}");
        let out = call.output(0, &[count, size[0], size[1], image.sizes[3]])?;
        let boxes = Boxes { corners: &corners, images: &images };
        Ok(crop(&call.cx(), method, &image, boxes, outside, &out)?)
    })
}

/// `CropAndResizeGradImage`.
fn of_image(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let method = method(attributes)?;
    Ok(move |call: &Call| {
        let [grad, corners, images] = [call.input(0)?, call.input(1)?, call.input(2)?];
        let sizes = call.host_ints(3)?;
        let count = checked(&corners, &images)?;
        require!(
            grad.dim() == 4 && grad.sizes[0] == count,
            "boxes and grads have incompatible shape: {:?}",
            grad.sizes
        );
        require!(sizes.len() == 4, "image_size must have four elements: {sizes:?}");
        require!(sizes[1] > 0 && sizes[2] > 0 && sizes[0] >= 0, "image dimensions must be positive: {sizes:?}");
        require!(grad.sizes[3] == sizes[3], "image_size and grads are incompatible: {sizes:?}, {:?}", grad.sizes);
        let out = call.output(0, &sizes)?;
        let boxes = Boxes { corners: &corners, images: &images };
        if grad.numel() == 0 {
            return Ok(copy::fill_with(&call.cx(), &out, Scalar::Int(0))?);
        }
        Ok(image_gradient(&call.cx(), method, &grad, boxes, &out)?)
    })
}

/// `CropAndResizeGradBoxes`.
fn of_boxes(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    require!(method(attributes)? == Method::Bilinear, "method must be 'bilinear'");
    Ok(move |call: &Call| {
        let [grad, image] = [call.input(0)?, call.input(1)?];
        let [corners, images] = [call.input(2)?, call.input(3)?];
        let count = checked(&corners, &images)?;
        require!(
            grad.dim() == 4 && grad.sizes[0] == count,
            "boxes and grads have incompatible shape: {:?}",
            grad.sizes
        );
        require!(image.dim() == 4, "image must be 4-D: {:?}", image.sizes);
        require!(image.sizes[1] > 0 && image.sizes[2] > 0, "image dimensions must be positive: {:?}", image.sizes);
        require!(image.sizes[3] == grad.sizes[3], "image, grads depth differ: {:?}, {:?}", image.sizes, grad.sizes);
        let out = call.output(0, &[count, 4])?;
        Ok(box_gradient(&call.cx(), &grad, &image, Boxes { corners: &corners, images: &images }, &out)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let floats: &[DType] = &[DType::F32, DType::F16, DType::F64];
    vec![
        Operator::new("CropAndResize", forward).of("T", floats).on_host(&["crop_size"]),
        Operator::new("CropAndResizeGradImage", of_image).of("T", floats).on_host(&["image_size"]),
        Operator::new("CropAndResizeGradBoxes", of_boxes).of("T", floats),
    ]
}
