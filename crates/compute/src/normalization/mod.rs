//! Normalisation: batch, layer, group and RMS norm, weight norm, renorm and softmax.
//!
//! Batch, layer, group and RMS norm subtract a mean and multiply by the inverse of a deviation,
//! both over some dimensions of the input: `y = (x - mean) * scale * weight + bias`. They differ
//! only in the dimensions, so they share [`statistics`] (one pass over the input, see
//! [`crate::reduction::variance`]), [`terms`] for the result and the input's gradient, and [`sums`]
//! for the gradient of parameters. Rows that fit into registers are normalised in one pass
//! ([`rows`]).

pub mod channels;
pub(crate) mod exponentials;
pub(crate) mod functions;
pub mod group;
pub mod layer;
pub mod renorm;
pub mod rms;
pub mod rows;
pub mod softmax;
pub mod statistics;
pub mod sums;
pub mod synchronized;
pub mod terms;
pub mod weight;
