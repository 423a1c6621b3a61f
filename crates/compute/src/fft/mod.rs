//! Discrete Fourier transforms.
//!
//! A transform of several dimensions processes one dimension after the other. Along a dimension,
//! all [lines] are transformed at once: in one [pass](radix_kernel) if a line fits into a
//! workgroup's memory, otherwise in several, and as a convolution ([chirp]) if its length
//! has large prime factors.

mod butterfly;
mod chirp;
mod lengths;
mod line;
pub(crate) mod lines;
mod numbers;
pub mod operator;
mod radix_kernel;
mod shape;
mod twiddles;
