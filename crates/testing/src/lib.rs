//! Helpers for the tests of several crates. Other crates depend on this one for their tests only.

mod allocations;
mod random;

pub use allocations::{CountingAllocator, allocations};
pub use random::Random;
