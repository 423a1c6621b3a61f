//! Images of one to three spatial dimensions: pooling, resampling, padding, sampling, windows.

pub mod geometry;
pub mod grid_sampler;
pub mod padding;
pub mod pooling;
pub mod unfold;
pub mod upsample;
