//! Times of the device: timestamps, spans around commands, and the relation of the device's clock
//! to the host's.

mod pool;
mod spans;
mod timestamps;

pub use timestamps::TimestampId;

pub(crate) use spans::Spans;
pub(crate) use timestamps::{Timestamps, nanoseconds};
