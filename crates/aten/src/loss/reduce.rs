//! The reduction of losses.

use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use dml_compute::loss::reduce::Reduce;

/// Decodes an operator's `reduction` argument.
pub fn reduce_of(call: &Call, code: i64) -> Result<Reduce> {
    match code {
        0 => Ok(Reduce::None),
        1 => Ok(Reduce::Mean),
        2 => Ok(Reduce::Sum),
        other => Err(Error::Value(format!("{}: {other} is not a valid value for reduction", call.name))),
    }
}
