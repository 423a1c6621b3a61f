//! Reductions along axes and by segment, running sums, counts.

mod arg_extrema;
mod counting;
pub mod reductions;
mod scans;
mod segments;
mod sparse_segments;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        arg_extrema::operators(),
        counting::operators(),
        reductions::operators(),
        scans::operators(),
        segments::operators(),
        sparse_segments::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
