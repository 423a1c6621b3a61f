//! max_pool, adaptive_max_pool and fractional_max_pool, with the indices of the chosen elements.

/// The dimensions before may be empty: a batch, or the channels of a single image.
pub const FIRST_NON_EMPTY_DIMENSION: usize = 1;
