//! Times of the device: spans around commands, and the device's clock beside the host's.

mod clocks;
mod span;

pub use clocks::{Clocks, ticks_between, unix_now};
pub use span::Span;
