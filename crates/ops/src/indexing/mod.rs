//! Elements found through index tensors and masks.

pub mod arguments;
mod embedding;
mod embedding_bag;
mod embedding_bag_backward;
mod fill_value;
mod gather;
mod index;
pub mod index_select;
pub mod mask;
mod masked;
pub mod nonzero;
mod scatter;
mod take;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    embedding::OPERATORS,
    embedding_bag::OPERATORS,
    embedding_bag_backward::OPERATORS,
    gather::OPERATORS,
    index::OPERATORS,
    index_select::OPERATORS,
    masked::OPERATORS,
    nonzero::OPERATORS,
    scatter::OPERATORS,
    take::OPERATORS,
];
