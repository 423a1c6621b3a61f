//! Object detection: suppression of overlapping boxes, pooling and crops of regions, deformable
//! convolution.

pub mod crop_and_resize;
pub mod deform_conv2d;
pub mod nms;
pub mod region;
pub mod region_gradient;
pub mod roi_align;
pub mod roi_pool;
