//! Images under projective maps.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::spatial::projective_transform::{Beyond, Resampling, transform};
use dml_kernel::DType;

/// `ImageProjectiveTransformV2` and `V3`; the latter has a number for what is beyond edges.
fn of_images(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let unknown = |what: &str, given: &str| Error::InvalidArgument(format!("Invalid {what} {given}"));
    let bilinear = match attributes.string("interpolation")?.as_str() {
        "NEAREST" => false,
        "BILINEAR" => true,
        other => return Err(unknown("interpolation", other)),
    };
    let beyond = match attributes.string("fill_mode")?.as_str() {
        "REFLECT" => Beyond::Reflect,
        "WRAP" => Beyond::Wrap,
        "CONSTANT" => Beyond::Constant,
        "NEAREST" => Beyond::Nearest,
        other => return Err(unknown("mode", other)),
    };
    Ok(move |call: &Call| {
        let [images, transforms] = [call.input(0)?, call.input(1)?];
        let size = call.host_ints(2)?;
        let fill = if call.inputs() > 3 { call.host_number(3)?.to_f64() as f32 } else { 0.0 };
        require!(images.dim() == 4, "Input images must have rank 4: {:?}", images.sizes);
        require!(
            transforms.dim() == 2 && transforms.sizes[1] == 8 && [1, images.sizes[0]].contains(&transforms.sizes[0]),
            "Input transform should be num_images x 8 or 1 x 8: {:?}",
            transforms.sizes
        );
        require!(size.len() == 2 && size.iter().all(|&n| n > 0), "output_shape must be two positive numbers: {size:?}");
        let out = call.output(0, &[images.sizes[0], size[0], size[1], images.sizes[3]])?;
        Ok(transform(&call.cx(), Resampling { bilinear, beyond }, &images, &transforms, fill, &out)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let dtypes: &[DType] = &[DType::F32, DType::F16, DType::F64, DType::I32, DType::I64, DType::U8];
    vec![
        Operator::new("ImageProjectiveTransformV2", of_images).of("dtype", dtypes).on_host(&["output_shape"]),
        Operator::new("ImageProjectiveTransformV3", of_images)
            .of("dtype", dtypes)
            .on_host(&["output_shape", "fill_value"]),
    ]
}
