//! Calls with tensors of dtypes that not every operator takes: complex numbers, and floats of 8 bits.

use crate::complex::run_complex;
use crate::float8::{is_float8, run_float8};
use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};

/// Whether a call of reals asks for complex numbers as its result.
pub fn asks_for_complex(call: &Call, operator: &Operator) -> bool {
    matches!(operator.dtype_argument(call, "dtype"), Ok(Some(dtype)) if dtype.is_complex())
}

/// Runs an operator, one of `all`, on arguments of which one [is special](crate::Arg::is_special), or that
/// [ask for it](asks_for_complex).
///
/// # Errors
/// [`Error::Fallback`] of an operator that has no kernel for them.
pub fn run_special(call: &mut Call, operator: &Operator, all: &[&'static Operator]) -> Result<()> {
    if !call.args.iter().any(is_float8) {
        return run_complex(call, operator, all);
    }
    let common = |argument: &crate::Arg| is_float8(argument) || !argument.is_special();
    if call.args.iter().all(common) {
        return run_float8(call, operator);
    }
    Err(Error::Fallback(format!("{} of complex numbers and floats of 8 bits", operator.name)))
}
