//! Memory: segments, and the memory types that they are made of.

mod class;
mod segment;

pub use segment::Segment;
