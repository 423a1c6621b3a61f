//! Which function of an operator a call runs: the one of common reals, or, with complex numbers or
//! floats of 8 bits among its arguments, the one that is made of it.

use crate::complex::run_complex;
use crate::float8::{is_float8, run_float8};
use crate::operator::Operator;
use crate::operator::call::{Arg, Call};
use crate::operator::error::{Error, Result};
use crate::table::operators;

/// Runs a call of `operator`.
///
/// # Errors
/// The operator's; [`Error::Fallback`] of an operator that has no kernel for its arguments.
#[inline]
pub fn dispatch(call: &mut Call, operator: &Operator) -> Result<()> {
    if call.args.iter().any(Arg::is_special) {
        return run_special(call, operator);
    }
    match (operator.run)(call) {
        // A function of reals returns a fallback before it has done anything.
        Err(Error::Fallback(_)) if asks_for_complex(call, operator) => run_special(call, operator),
        ran => ran,
    }
}

/// Whether a call of reals asks for complex numbers as its result.
fn asks_for_complex(call: &Call, operator: &Operator) -> bool {
    matches!(operator.dtype_argument(call, "dtype"), Ok(Some(dtype)) if dtype.is_complex())
}

/// Runs an operator on arguments of which one [is special](Arg::is_special), or that [ask for
/// it](asks_for_complex).
#[cold]
fn run_special(call: &mut Call, operator: &Operator) -> Result<()> {
    if !call.args.iter().any(is_float8) {
        return run_complex(call, operator, operators());
    }
    let common = |argument: &Arg| is_float8(argument) || !argument.is_special();
    if call.args.iter().all(common) {
        return run_float8(call, operator);
    }
    Err(Error::Fallback(format!("{} of complex numbers and floats of 8 bits", operator.name)))
}
