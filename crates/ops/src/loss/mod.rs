//! Losses that PyTorch does not compose of other operators.

mod ctc;
mod elementwise;
mod log_sigmoid;
mod margin;
mod nll;

use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    ctc::OPERATORS,
    elementwise::OPERATORS,
    log_sigmoid::OPERATORS,
    margin::multi::OPERATORS,
    margin::multilabel::OPERATORS,
    nll::OPERATORS,
];

/// What becomes of the losses of single elements. The codes are PyTorch's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Reduce {
    None = 0,
    Mean = 1,
    Sum = 2,
}

impl Reduce {
    fn argument(call: &Call, i: usize) -> Result<Reduce> {
        match call.int(i)? {
            0 => Ok(Reduce::None),
            1 => Ok(Reduce::Mean),
            2 => Ok(Reduce::Sum),
            other => Err(Error::Value(format!("{}: {other} is not a valid value for reduction", call.name))),
        }
    }
}
