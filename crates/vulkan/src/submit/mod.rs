//! Submission to a queue, and its progress: a [`Recorder`] encodes the next submission,
//! [`submissions`] keeps the objects of pending ones, and a [`Timeline`] has the progress of the
//! queue.

mod marker;
mod recorder;
mod semaphore;
mod submissions;
mod timeline;

pub use recorder::Recorder;
pub use timeline::Timeline;
