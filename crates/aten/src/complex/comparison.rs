//! Comparisons of complex tensors for equality, and logical operators, where a number is true
//! unless it is 0.

use crate::check;
use crate::complex::overload::run_on;
use crate::complex::pointwise::operator;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::pointwise::operator::Argument;
use dml_compute::complex::parts::as_real;
use dml_compute::pointwise::complex as functions;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Returns which elements of a tensor are nonzero.
pub fn is_nonzero(call: &mut Call, t: &View) -> Result<View> {
    let bools = call.empty(DType::Bool, &t.sizes)?;
    let before = call.returns.len();
    operator(call, Out::Into(&bools), &functions::TRUTH, &[Argument::Tensor(AnyTensor(t))])?;
    call.returns.truncate(before);
    Ok(bools)
}

/// Runs an operator that only depends on which elements are nonzero.
pub fn of_truth(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let bools = is_nonzero(call, t)?;
    let mut args: SmallVec<[Arg; 8]> = call.args.iter().cloned().collect();
    args[0] = Arg::Tensor(bools);
    run_on(call, overload, &args)
}

/// `self` where the condition is true, else `other`.
pub fn where_(call: &mut Call, overload: &Operator) -> Result<()> {
    let condition: AnyTensor = overload.argument(call, "condition")?;
    check!(
        matches!(condition.dtype, DType::Bool | DType::U8),
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype
    );
    let x: AnyTensor = overload.argument(call, "self")?;
    let y: AnyTensor = overload.argument(call, "other")?;
    let out = overload.out(call)?;
    operator(call, out, &functions::WHERE, &[condition.into(), x.into(), y.into()])
}

/// Whether two tensors have the same shape and equal elements, computed on the parts as reals.
pub fn equal(call: &mut Call, overload: &Operator) -> Result<()> {
    let x: &View = overload.argument(call, "self")?;
    let y: &View = overload.argument(call, "other")?;
    check!(
        x.dtype == y.dtype,
        Runtime,
        "Expected object of data type {} but got data type {} for argument #2 'other' in call to equal",
        x.dtype,
        y.dtype
    );
    let args = [x, y].map(|t| Arg::Tensor(as_real(t)));
    run_on(call, overload, &args)
}
