//! Memory: segments and their memory types.

mod class;
mod segment;

pub use segment::Segment;
