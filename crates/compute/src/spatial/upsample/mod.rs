//! Resampling of images (`torch.nn.functional.interpolate`): nearest, linear, cubic, with and
//! without antialiasing.
//!
//! An interpolation is a weighted sum along each axis ([`axis`]). Both directions gather: an
//! element of a result visits what it is made of in a fixed order. Where that is much, axes are
//! resampled one after the other ([`kernel`]).

pub mod axis;
pub mod interpolate;
pub mod kernel;
