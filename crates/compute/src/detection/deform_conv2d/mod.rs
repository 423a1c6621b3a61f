//! Deformable convolution (X. Zhu et al., "Deformable ConvNets v2", 2019): every tap of a filter
//! reads the image at an offset of its own, times a factor of its own (the mask).
//!
//! As in a convolution by im2col, the values that filters read are written as a matrix
//! ([`columns`]), and the rest is matrix products ([`operator`]). From the gradient of that matrix
//! follow the gradients of the offsets and the mask, for each point ([`offset_gradient`]), and the
//! gradient of the image ([`input_gradient`]), for which the points that read a pixel are found by
//! sorting.

mod columns;
pub mod geometry;
mod input_gradient;
mod offset_gradient;
pub mod operator;
