//! torchvision's operators for detection: suppression of overlapping boxes, pooling of regions, deformable convolution.

mod deform_conv2d;
mod nms;
mod region;
mod region_gradient;
mod roi_align;
mod roi_pool;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[deform_conv2d::OPERATORS, nms::OPERATORS, roi_align::OPERATORS, roi_pool::OPERATORS];
