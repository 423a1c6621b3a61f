//! The back of a device's queue: from ended batches to the driver. It records commands with the
//! barriers that they need, and knows how far the device is. It does not know the pending batch.
//!
//! # Verbs
//!
//! | verb | meaning |
//! |---|---|
//! | `send`, `receive` | pass an ended batch to the submission thread ([`handover`]) |
//! | `record` | puts a batch's commands into the driver's command buffer |
//! | `submit` | gives the command buffer to the driver |
//! | `catch_up` | records and submits everything that was handed over |
//! | `recycle` | uses the memory of a submitted batch for a later one |
//! | `throttle` | waits while as much is in flight as may be ([`run_ahead`]) |
//! | `wait`, `retire` | as the queue's ([`crate::queue`]) |
//! | `defer`, `take_deferred` | keep an error for a thread's next call; return it to that thread |
//! | `check` | passes a result on, and remembers that the device was lost if it says so |
//!
//! The states of a batch are types, which these verbs take and return: see [`batch`].
//!
//! # Locks
//!
//! The stream's lock is taken behind the queue's. See [`crate::queue`].

pub(crate) mod barriers;
pub(crate) mod batch;
pub(crate) mod errors;
pub(crate) mod handover;
mod mailbox;
pub(crate) mod ordered;
pub(crate) mod run_ahead;
pub(crate) mod statistics;
pub(crate) mod stream;
pub(crate) mod submission;
