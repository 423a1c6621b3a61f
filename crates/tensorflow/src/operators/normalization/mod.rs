//! Normalisation over batches and over neighbouring channels.

mod batch;
mod local_response;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [batch::operators(), local_response::operators()].into_iter().flatten().collect()
}
