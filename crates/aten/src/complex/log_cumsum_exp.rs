//! Running log-sums of exponentials of complex tensors.

use crate::complex::copy::checked_copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, structured};
use dml_compute::complex::log_cumsum_exp;
use dml_compute::complex::reduction::working_copy;
use dml_compute::view::View;

/// Running log-sums of exponentials along a dimension.
pub fn log_cumsum_exp(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let dim: i64 = overload.argument(call, "dim")?;
    let out = overload.out(call)?;
    let along = call.wrap_dim(dim, t.dim())?;
    structured::check_given(out.given(), t.dtype)?;
    let sums = working_copy(call, t)?;
    log_cumsum_exp::log_cumsum_exp(call, &sums, along)?;
    let result = call.result(out.given(), t.dtype, &t.sizes)?;
    checked_copy(call, &sums, &result)?;
    call.ret(result);
    Ok(())
}
