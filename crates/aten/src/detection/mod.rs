//! torchvision's operators for detection: non-maximum suppression, pooling of regions, deformable
//! convolution.

pub mod deform_conv2d;
pub mod nms;
pub mod region;
pub mod region_gradient;
pub mod roi_align;
pub mod roi_pool;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[deform_conv2d::OPERATORS, nms::OPERATORS, roi_align::OPERATORS, roi_pool::OPERATORS];
