//! Times of the device: timestamps, spans around commands, and the device's clock beside the host's.

mod clocks;
mod pool;
mod spans;
mod timestamps;

pub use clocks::{Clocks, unix_now};
pub use spans::Span;
pub use timestamps::TimestampId;

pub(crate) use clocks::ticks_between;
pub(crate) use spans::Spans;
pub(crate) use timestamps::{Timestamps, nanoseconds};
