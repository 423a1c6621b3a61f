//! The operators of quantisation: numbers rounded to those that narrow integers represent, and
//! products with quantised weights.

pub mod dynamic_linear;
pub mod fake_quantize;
pub mod learnable;
pub mod observer;
pub mod packed_weights;
pub mod quantize;
pub mod scaled_mm;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    dynamic_linear::OPERATORS,
    fake_quantize::OPERATORS,
    learnable::OPERATORS,
    observer::OPERATORS,
    packed_weights::OPERATORS,
    quantize::OPERATORS,
    scaled_mm::OPERATORS,
];
