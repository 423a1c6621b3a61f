//! Checked sizes of a deformable convolution.

use crate::check;
use crate::operator::error::Result;
use dml_compute::detection::deform_conv2d::geometry::Geometry;
use dml_compute::view::View;

/// Checks sizes and computes the result's sizes.
///
/// # Errors
/// `RuntimeError` as on the CPU.
pub fn checked(
    input: &View,
    weight: &View,
    [stride, padding, dilation]: [[i64; 2]; 3],
    groups: i64,
    offset_groups: i64,
) -> Result<Geometry> {
    check!(
        input.dim() == 4 && weight.dim() == 4,
        Runtime,
        "deform_conv2d: expected input and weight of 4 dimensions, got {}D and {}D",
        input.dim(),
        weight.dim()
    );
    let kernel = [weight.sizes[2], weight.sizes[3]];
    let image = [input.sizes[2], input.sizes[3]];
    let pair = |name: &str, [h, w]: [i64; 2]| format!("{name}_h: {h} {name}_w: {w}");
    check!(kernel.iter().all(|&n| n > 0), Runtime, "{}", pair("weight", kernel));
    check!(stride.iter().all(|&n| n > 0), Runtime, "{}", pair("stride", stride));
    check!(padding.iter().all(|&n| n >= 0), Runtime, "{}", pair("pad", padding));
    check!(dilation.iter().all(|&n| n > 0), Runtime, "{}", pair("dilation", dilation));
    let (channels, results) = (input.sizes[1], weight.sizes[0]);
    check!(
        groups > 0 && weight.sizes[1] * groups == channels && results % groups == 0,
        Runtime,
        "deform_conv2d: a weight of sizes {:?} does not fit {channels} channels in {groups} groups",
        weight.sizes.as_slice()
    );
    check!(
        offset_groups > 0 && channels % offset_groups == 0,
        Runtime,
        "deform_conv2d: {channels} channels are no multiple of {offset_groups} offset groups"
    );
    let small = |n: &i64| *n < 1 << 24;
    let all = [image, kernel, stride, padding, dilation];
    check!(all.iter().flatten().all(small), Runtime, "deform_conv2d: sizes {all:?} are too large");
    let result = [0, 1].map(|d| {
        let reach = image[d] + 2 * padding[d] - (dilation[d] * (kernel[d] - 1) + 1);
        if reach < 0 { 0 } else { reach / stride[d] + 1 }
    });
    check!(
        result.iter().all(|&n| n > 0),
        Runtime,
        "Calculated output size too small - out_h: {} out_w: {}",
        result[0],
        result[1]
    );
    let batch = input.sizes[0];
    Ok(Geometry { batch, channels, image, kernel, stride, padding, dilation, result, offset_groups })
}
