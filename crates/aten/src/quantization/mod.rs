//! Quantisation: numbers rounded to those that narrow integers stand for, and products with weights
//! that are kept so.

pub mod fake_quantize;
pub mod learnable;
pub mod observer;
pub mod packed_weights;
pub mod quantize;
pub mod scaled_mm;

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
