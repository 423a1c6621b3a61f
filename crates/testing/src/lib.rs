//! What the tests of several crates share. No other crate depends on it but for its tests.

mod allocations;
mod random;

pub use allocations::{CountingAllocator, allocations};
pub use random::Random;
