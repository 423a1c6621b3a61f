//! Elements at other places: joins, slices, padding, permutations.

mod blocks;
mod data_format;
mod joining;
mod padding;
mod permutations;
mod reinterpretation;
mod repetition;
mod reversal;
mod slicing;
mod splitting;
mod strided_slices;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        blocks::operators(),
        data_format::operators(),
        joining::operators(),
        padding::operators(),
        permutations::operators(),
        reinterpretation::operators(),
        repetition::operators(),
        reversal::operators(),
        slicing::operators(),
        splitting::operators(),
        strided_slices::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
