//! Losses that PyTorch does not compose of other operators, and cross-entropy, which it does.

mod cross_entropy;
mod ctc;
mod elementwise;
mod log_sigmoid;
mod margin;
mod nll;
mod reduce;

use crate::operator::Operator;

/// The files' overloads.
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
