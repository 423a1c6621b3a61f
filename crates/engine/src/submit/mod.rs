//! From ended batches to the driver: what is recorded, with which barriers, and what is known of
//! how far the device is. Knows nothing of what is still pending.

pub(crate) mod barriers;
pub(crate) mod batch;
pub(crate) mod errors;
pub(crate) mod handover;
pub(crate) mod intervals;
mod mailbox;
pub(crate) mod run_ahead;
pub(crate) mod statistics;
pub(crate) mod stream;
pub(crate) mod submission;
