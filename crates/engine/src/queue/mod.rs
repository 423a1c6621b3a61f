//! What is enqueued, until its batch is handed over to be recorded; and the memory that it uses,
//! under the same lock.

pub(crate) mod allocate;
pub(crate) mod device_queue;
pub(crate) mod enqueue;
pub(crate) mod pending;
pub(crate) mod policy;
pub(crate) mod thread;
mod validate;
