//! Discrete Fourier transforms: what `torch.fft`, `stft` and `istft` are made of.
//!
//! A transform of several dimensions goes along one after the other. Along a dimension, all
//! [lines] are transformed at once: in one [pass] where a line fits into a workgroup's
//! memory, in several where it does not, and as a convolution ([chirp]) where its length has
//! large prime factors.

pub mod butterfly;
pub mod chirp;
pub mod lengths;
pub mod lines;
pub mod operator;
pub mod pass;
pub mod twiddles;
