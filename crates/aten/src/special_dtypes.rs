//! Which function of an operator a call runs: the one for common real dtypes, or, if complex
//! numbers or 8-bit floats are among its arguments, the one that is derived from it.

use crate::complex::run_complex;
use crate::float8::{is_float8, run_float8};
use crate::operator::Operator;
use crate::operator::call::{Arg, Call};
use crate::operator::error::{Error, Result};

/// Runs a call of `operator`.
///
/// # Errors
/// The operator's; [`Error::Fallback`] if the operator has no kernel for its arguments.
#[inline]
pub fn dispatch(call: &mut Call, operator: &Operator) -> Result<()> {
    if call.args.iter().any(Arg::is_special) {
        return run_for_special_dtype(call, operator);
    }
    match (operator.run)(call) {
        // A function for real dtypes returns a fallback before it has done anything.
        Err(Error::Fallback(_)) if requests_complex_result(call, operator) => run_for_special_dtype(call, operator),
        ran => ran,
    }
}

/// Whether a call with real arguments asks for a complex result.
fn requests_complex_result(call: &Call, operator: &Operator) -> bool {
    matches!(operator.dtype_argument(call, "dtype"), Ok(Some(dtype)) if dtype.is_complex())
}

/// Runs an operator on arguments of which at least one [has a special dtype](Arg::is_special), or
/// that [ask for a complex result](requests_complex_result).
#[cold]
fn run_for_special_dtype(call: &mut Call, operator: &Operator) -> Result<()> {
    if !call.args.iter().any(is_float8) {
        return run_complex(call, operator);
    }
    let common = |argument: &Arg| is_float8(argument) || !argument.is_special();
    if call.args.iter().all(common) {
        return run_float8(call, operator);
    }
    Err(Error::Fallback(format!("{} of complex numbers and floats of 8 bits", operator.name)))
}
