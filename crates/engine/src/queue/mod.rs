//! The front of a device's queue: commands that are enqueued, until their batch ends; and the
//! memory that they use, under the same lock. What happens to a batch that has ended is
//! [`crate::submit`]'s.
//!
//! # Verbs
//!
//! Each has one meaning, here and in [`crate::submit`]. A name that ends in `_locked` is for a
//! caller that holds the queue's lock. The last column says with what locked a verb may wait.
//!
//! | verb | meaning | waits with |
//! |---|---|---|
//! | `launch`, `copy`, `replay`, `mark` | append a command to the batch | the queue locked |
//! | `stage` | copies bytes to the ring, for the command that is enqueued next | the queue locked |
//! | `throttle` | waits while as much is in flight as may be | nothing locked |
//! | `end` | ends the pending batch, which gets its ticket | |
//! | `hand_over` | ends the pending batch, and leaves it to the submission thread | |
//! | `flush` | ends the pending batch, and submits it in the calling thread | |
//! | `prepare_wait` | does before a flush what the flush would wait for | nothing locked |
//! | `wait` | returns when a ticket is complete, or the program interrupts | nothing locked |
//! | `retire` | a ticket is complete: memory that it used may be used again | |
//! | `synchronize` | flushes, and waits for everything enqueued | nothing locked |
//! | `drain` | flushes, and waits until the driver, too, is done | the queue locked |
//! | `defer` | saves an error for the next call of the thread that enqueued the work | |
//!
//! Appending a command may end the batch: [`policy`] decides it. Appending and staging wait for
//! nothing but room in the ring. A drain is preceded by a synchronization where the caller can wait
//! unlocked, so that the drain itself is short.
//!
//! # Locks
//!
//! Lock order: queue, then stream. A copy with pinned memory locks that between the two. After the
//! stream come locks for a few instructions each: of the mailbox, of the window of commands in
//! flight, and of deferred errors.
//!
//! Every operator takes the queue's lock ([`DeviceQueue::lock`](device_queue::DeviceQueue::lock)),
//! so nothing waits for the device while it is held but a drain and a wait for room in the ring.

pub(crate) mod allocate;
pub(crate) mod device_queue;
pub(crate) mod enqueue;
pub(crate) mod faults;
pub(crate) mod flush;
pub(crate) mod pending;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod thread;
pub(crate) mod throttle;
mod validate;
pub(crate) mod wait;
