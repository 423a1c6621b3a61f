//! Images of one to three spatial dimensions: pooling, resampling, padding, sampling, windows.

pub mod geometry;
pub mod grid_sampler;
pub mod padding;
pub mod pooling;
pub mod unfold;
pub mod upsample;

use crate::operator::Operator;

/// The files' overloads; [`pooling`] lists its own.
pub const OPERATORS: &[&[Operator]] =
    &[grid_sampler::OPERATORS, padding::OPERATORS, unfold::OPERATORS, upsample::OPERATORS];
