//! What is enqueued, until it is handed over to be recorded.

pub(crate) mod batch;
pub(crate) mod hazards;
pub(crate) mod launch;
pub(crate) mod pending;
pub(crate) mod policy;
