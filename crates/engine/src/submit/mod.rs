//! Recording and submitting batches.

pub(crate) mod stream;
pub(crate) mod submitter;
