//! Times of the device: timestamps, spans around commands, and the device's clock beside the
//! host's.

mod pool;
mod spans;
mod timestamps;

pub use timestamps::TimestampId;

pub(crate) use spans::Spans;
pub(crate) use timestamps::{Timestamps, nanoseconds};
