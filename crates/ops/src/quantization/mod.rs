//! Quantisation: numbers rounded to those that narrow integers stand for, and products with weights that are kept so.

mod fake_quantize;
mod interleaved;
mod learnable;
mod nibbles;
mod observer;
mod packed_weights;
mod quantize;
mod scaled_mm;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    fake_quantize::OPERATORS,
    learnable::OPERATORS,
    observer::OPERATORS,
    packed_weights::OPERATORS,
    quantize::OPERATORS,
    scaled_mm::OPERATORS,
];
