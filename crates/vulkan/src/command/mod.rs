//! Commands and their buffers. Nothing here submits: the queue's [`Recorder`](crate::Recorder) and
//! [`Recording`] are built on [`Encoder`], which depends on neither.

mod barrier;
mod buffer;
mod encoder;
mod recording;

pub use encoder::Encoder;
pub use recording::Recording;

pub(crate) use buffer::{CommandBuffer, CommandPool};
