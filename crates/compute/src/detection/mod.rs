//! Object detection: suppression of overlapping boxes, pooling of regions, deformable convolution.

pub mod deform_conv2d;
pub mod nms;
pub mod region;
pub mod region_gradient;
pub mod roi_align;
pub mod roi_pool;
