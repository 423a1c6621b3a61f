//! The operators of images of one to three spatial dimensions: pooling, resampling, padding,
//! sampling, windows.

pub mod geometry;
pub mod grid_sampler;
pub mod padding;
pub mod pooling;
pub mod unfold;
pub mod upsample;

use crate::operator::Operator;

/// The overloads of this folder's files; [`pooling`] has a list of its own.
pub const OPERATORS: &[&[Operator]] =
    &[grid_sampler::OPERATORS, padding::OPERATORS, unfold::OPERATORS, upsample::OPERATORS];
