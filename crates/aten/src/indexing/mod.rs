//! Operators on elements selected by index tensors and masks.

pub mod arguments;
pub mod embedding;
pub mod embedding_bag;
pub mod embedding_bag_backward;
pub mod fill_value;
pub mod gather;
pub mod index;
pub mod index_select;
pub mod masked;
pub mod nonzero;
pub mod scatter;
pub mod take;

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
