//! Elementwise functions.

mod activations;
mod arithmetic;
mod bits;
mod check_numerics;
mod comparisons;
mod complex_numbers;
mod conversion;
mod division;
mod selection;
mod special_functions;
mod transcendental;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        activations::operators(),
        arithmetic::operators(),
        bits::operators(),
        check_numerics::operators(),
        comparisons::operators(),
        complex_numbers::operators(),
        conversion::operators(),
        division::operators(),
        selection::operators(),
        special_functions::operators(),
        transcendental::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
