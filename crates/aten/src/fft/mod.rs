//! The operators of discrete Fourier transforms, which `torch.fft`, `stft` and `istft` are composed
//! of.
//!
//! A transform of several dimensions is computed along one after the other. Along a dimension, all
//! [lines](lines) are transformed in parallel: in one [pass](pass) if a line fits into a
//! workgroup's shared memory, in several if it does not, and as a convolution ([chirp](chirp)) if
//! its length has large prime factors.

pub mod operator;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[operator::OPERATORS];
