//! Scaled dot-product attention and its gradients, fused:
//! `softmax(scale * query @ key^T + bias) @ value` for every head of
//! `[batch, heads, length, width]`. Where keys have fewer heads than queries, neighbouring heads of
//! queries share one (Ainslie et al., "GQA: training generalized multi-query transformer models",
//! 2023).

pub mod dropout;
pub mod dropout_mask;
pub mod functions;
pub mod kernel;
pub mod masked_softmax;
pub mod matrix;
pub mod ranges;
pub mod scaled_dot_product;
pub mod spec;
pub mod units;
pub mod worker;
