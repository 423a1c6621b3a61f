//! Running products of complex tensors, in steps of doubling distance (Hillis and Steele, "Data
//! parallel algorithms", 1986). Running sums are computed by parts.

use crate::complex::copy::checked_copy;
use crate::complex::reduction::multiply_by;
use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::complex::reduction::working_copy;
use dml_compute::view::View;

/// Running products along a dimension.
pub fn running_product(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let dim: i64 = overload.argument(call, "dim")?;
    let out = overload.out(call)?;
    let along = call.wrap_dim(dim, t.dim())?;
    let result = call.result(out.given(), t.dtype, &t.sizes)?;
    let mut now = t.clone();
    let n = t.sizes.get(along).copied().unwrap_or(1);
    let mut step = 1;
    while step < n && t.numel() > 0 {
        let next = working_copy(call, &now)?;
        let (earlier, later) = (now.narrow(along, 0, n - step), next.narrow(along, step, n - step));
        multiply_by(call, &later, &earlier)?;
        now = next;
        step *= 2;
    }
    checked_copy(call, &now, &result)?;
    call.ret(result);
    Ok(())
}
