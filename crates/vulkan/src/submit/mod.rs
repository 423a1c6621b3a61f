//! Submitting to a queue, and following it: a [`Recorder`] encodes the next submission, [`submissions`] keeps what
//! pending ones need, and a [`Timeline`] knows how far the queue has come.

mod marker;
mod recorder;
mod semaphore;
mod submissions;
mod timeline;

pub use recorder::Recorder;
pub use timeline::Timeline;
