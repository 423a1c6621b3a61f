//! The operators of losses that PyTorch does not compose of other operators, and of cross-entropy,
//! which it does.

pub mod cross_entropy;
pub mod ctc;
pub mod elementwise;
pub mod log_sigmoid;
pub mod margin;
pub mod nll;
pub mod reduce;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    cross_entropy::forward::OPERATORS,
    cross_entropy::backward::OPERATORS,
    ctc::forward::OPERATORS,
    ctc::backward::OPERATORS,
    elementwise::OPERATORS,
    log_sigmoid::OPERATORS,
    margin::multi::OPERATORS,
    margin::multilabel::OPERATORS,
    nll::forward::OPERATORS,
    nll::backward::OPERATORS,
];
