//! The operators of scaled dot-product attention and its gradients, fused:
//! `softmax(scale * query @ key^T + bias) @ value` for every head of
//! `[batch, heads, length, width]`. If there are fewer key heads than query heads, adjacent query
//! heads share a key head (Ainslie et al., "GQA: training generalized multi-query transformer
//! models", 2023).

pub mod dropout_mask;
pub mod masked_softmax;
pub mod projection;
pub mod scaled_dot_product;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[scaled_dot_product::OPERATORS, dropout_mask::OPERATORS, masked_softmax::OPERATORS, projection::OPERATORS];
