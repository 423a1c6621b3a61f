//! Normalisation: batch, layer, group and RMS norm, weight norm, renorm and softmax.
//!
//! Batch, layer, group and RMS norm subtract a mean and multiply by the inverse of a deviation, both taken over some
//! dimensions of the input: `y = (x - mean) * scale * weight + bias`. What differs is the dimensions, so the parts are
//! common: [`statistics`] (one pass over the input, see [`crate::reduction::variance`]), [`terms`] for the result and the input's
//! gradient, and [`sums`] for the gradient of parameters. Rows that fit into registers are normalised in one pass ([`rows`]).

mod batch;
mod channels;
pub mod exponentials;
mod group;
mod layer;
pub mod renorm;
mod rms;
mod rows;
pub mod softmax;
mod statistics;
mod sums;
mod synchronized;
mod terms;
mod weight;

use crate::operator::Operator;

/// The files' overloads.
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
