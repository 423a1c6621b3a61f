//! Running log-sums of exponentials of complex tensors.
//!
//! An invocation walks a line in order, as the CPU does: the imaginary part of a logarithm is one
//! of many, a whole turn apart, and which one comes out depends on the order.

use crate::complex::copy::checked_copy;
use crate::complex::route::Route;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, structured};
use dml_compute::complex::log_cumsum_exp::{Arguments, STEPS, Spec};
use dml_compute::complex::parts::as_real;
use dml_compute::complex::reduction::working_copy;
use dml_compute::view::View;
use dml_compute::view::layout::index_type;

pub fn route(name: &str) -> Option<Route> {
    (name == "_logcumsumexp").then_some(Route::Run(log_cumsum_exp))
}

fn log_cumsum_exp(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let dim: i64 = overload.argument(call, "dim")?;
    let out = overload.out(call)?;
    let along = call.wrap_dim(dim, t.dim())?;
    structured::check_given(out.given(), t.dtype)?;
    let sums = working_copy(call, t)?;
    if sums.numel() > 0 && t.dim() > 0 {
        let (length, inner) = (t.sizes[along], t.sizes[along + 1..].iter().product::<i64>());
        let lines = sums.numel() / length;
        let spec = Spec { part: t.dtype.real(), index: index_type(2 * sums.numel()) };
        for first in (0..length).step_by(STEPS as usize) {
            let place = [lines, length, inner, first, length.min(first + STEPS)];
            call.run_threads(&spec, &Arguments { sums: &as_real(&sums), place }, lines as u64)?;
        }
    }
    let result = call.result(out.given(), t.dtype, &t.sizes)?;
    checked_copy(call, &sums, &result)?;
    call.ret(result);
    Ok(())
}
