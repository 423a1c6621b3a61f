//! Images of one to three spatial dimensions: pooling, resampling, padding, sampling, windows,
//! dilation, projective maps.

pub mod dilation;
pub mod geometry;
pub mod grid_sampler;
pub mod padding;
pub mod pooling;
pub mod projective_transform;
pub mod unfold;
pub mod upsample;
