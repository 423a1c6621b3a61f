//! max_pool, adaptive_max_pool and fractional_max_pool, with the indices of the chosen elements.

/// What comes first may be empty as PyTorch checks it, a batch or the channels of a single image.
pub const FIRST_NOT_EMPTY: usize = 1;
