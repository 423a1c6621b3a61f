//! The operators of resampling images (`torch.nn.functional.interpolate`): nearest, linear, cubic,
//! with and without antialiasing.
//!
//! An interpolation is a weighted sum along each axis ([`axis`]). Both directions gather: an
//! element of a result visits its inputs in a fixed order. If these are many, axes are resampled
//! one after the other ([`kernel`]).

pub mod interpolate;

pub use self::interpolate::OPERATORS;
