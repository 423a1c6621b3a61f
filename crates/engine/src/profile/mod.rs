//! What ran when, and where the host spends its time.

pub(crate) mod activity;
pub mod measure;
pub(crate) mod sink;
