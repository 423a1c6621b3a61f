//! Deformable convolution (X. Zhu et al., "Deformable ConvNets v2", 2019): every element of a
//! kernel reads the image at an offset of its own, times a number of its own (the mask).
//!
//! As in a convolution by columns, what the kernels read is written as a matrix ([`columns`]), and
//! the rest is products ([`operator`]). The gradient of the matrix becomes those of the offsets and
//! the mask, point by point ([`offset_gradient`]), and that of the image ([`input_gradient`]), for
//! which the points that read a pixel are found by sorting.

pub mod geometry;
pub mod operator;

pub use self::operator::OPERATORS;
