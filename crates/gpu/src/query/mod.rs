//! Times of the device: spans around commands, and the relation of the device's clock to the
//! host's.

mod clocks;
mod span;

pub use clocks::{Clocks, ticks_between, unix_now};
pub use span::Span;
