//! Scaled dot-product attention and its gradients, fused:
//! `softmax(scale * query @ key^T + bias) @ value` for every head of
//! `[batch, heads, length, width]`. If keys have fewer heads than queries, adjacent heads of
//! queries share one (Ainslie et al., "GQA: training generalized multi-query transformer models",
//! 2023).

mod dropout;
pub mod dropout_mask;
pub(crate) mod functions;
mod kernel;
pub mod masked_softmax;
mod matrix;
pub mod matrix_units;
mod prefetch;
mod ranges;
pub mod scaled_dot_product;
mod shared_memory;
mod spec;
mod worker;
