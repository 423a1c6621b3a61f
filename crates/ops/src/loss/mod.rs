//! Losses that PyTorch does not compose of other operators.

mod ctc;
mod elementwise;
mod log_sigmoid;
mod margin;
mod nll;
mod reduce;

use crate::operator::Operator;

/// The files' overloads.
pub const OPERATORS: &[&[Operator]] = &[
    ctc::forward::OPERATORS,
    ctc::backward::OPERATORS,
    elementwise::OPERATORS,
    log_sigmoid::OPERATORS,
    margin::multi::OPERATORS,
    margin::multilabel::OPERATORS,
    nll::forward::OPERATORS,
    nll::backward::OPERATORS,
];
