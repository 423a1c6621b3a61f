//! Quantisation: numbers rounded to those that narrow integers represent, and products with
//! quantised weights.

pub mod fake_quantize;
pub(crate) mod functions;
pub mod interleaved;
pub mod learnable;
pub mod nibbles;
pub mod observer;
pub mod packed_weights;
pub mod quantize;
pub mod scaled_product;
