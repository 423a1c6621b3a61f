//! The operators of normalisation: batch, layer, group and RMS norm, weight norm, renorm and
//! softmax.
//!
//! Batch, layer, group and RMS norm subtract a mean and multiply by the inverse of a standard
//! deviation, both over some dimensions of the input: `y = (x - mean) * scale * weight + bias`.
//! They differ in the dimensions, so they share the parts: [`statistics`] (one pass over the input,
//! see [`crate::reduction::variance`]), [`terms`] for the result and the input's gradient, and
//! [`sums`] for the gradient of parameters. Rows that fit into registers are normalised in one pass
//! ([`rows`]).

pub mod batch;
pub mod channels;
pub mod group;
pub mod layer;
pub mod renorm;
pub mod rms;
pub mod softmax;
pub mod statistics;
pub mod synchronized;
pub mod weight;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    batch::OPERATORS,
    group::OPERATORS,
    layer::OPERATORS,
    renorm::OPERATORS,
    rms::OPERATORS,
    softmax::OPERATORS,
    synchronized::OPERATORS,
    weight::OPERATORS,
];
