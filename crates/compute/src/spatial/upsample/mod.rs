//! Resampling of images: nearest, linear, cubic, with and without antialiasing.
//!
//! An interpolation is a weighted sum along each axis ([`axis`]). Both directions gather: an
//! element of a result iterates over its inputs in a fixed order. If they are many, axes are
//! resampled one after the other ([`kernel`]).

pub mod axis;
pub mod interpolate;
pub mod kernel;
