//! Quantisation: numbers rounded to those that narrow integers stand for, and products with weights
//! that are kept so.

pub mod fake_quantize;
pub mod functions;
pub mod interleaved;
pub mod learnable;
pub mod nibbles;
pub mod observer;
pub mod packed_weights;
pub mod quantize;
