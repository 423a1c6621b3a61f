//! Reading and writing by index.

mod gathering;
mod inplace;
mod nonzero;
mod one_hot;
mod scattering;
mod stitching;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        gathering::operators(),
        inplace::operators(),
        nonzero::operators(),
        one_hot::operators(),
        scattering::operators(),
        stitching::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
