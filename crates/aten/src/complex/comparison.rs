//! Comparisons of complex tensors, which are equal or not, and logic, where a number is true unless
//! it is 0.

use crate::check;
use crate::complex::overload::run_on;
use crate::complex::pointwise::operator;
use crate::complex::route::Route;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::pointwise::operator::Argument;
use dml_compute::complex::functions;
use dml_compute::complex::parts::as_real;
use dml_compute::complex::pointwise::Rule;
use dml_compute::pointwise::function::Function;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

pub fn route(name: &str) -> Option<Route> {
    Some(Route::Run(match name {
        "eq" => |call, overload| binary(call, overload, &functions::EQ),
        "ne" => |call, overload| binary(call, overload, &functions::NE),
        "logical_and" => |call, overload| binary(call, overload, &functions::LOGICAL_AND),
        "logical_or" => |call, overload| binary(call, overload, &functions::LOGICAL_OR),
        "logical_xor" => |call, overload| binary(call, overload, &functions::LOGICAL_XOR),
        "logical_not" => |call, overload| unary(call, overload, &functions::LOGICAL_NOT),
        "isnan" => |call, overload| unary(call, overload, &functions::ISNAN),
        "isinf" => |call, overload| unary(call, overload, &functions::ISINF),
        "nonzero" | "nonzero_static" | "count_nonzero" | "all" | "any" => of_truth,
        "where" => where_,
        "equal" => equal,
        _ => return None,
    }))
}

fn binary(call: &mut Call, overload: &Operator, function: &'static Function) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let y: TensorOrScalar = overload.argument(call, "other")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Bool, function, &[x.into(), y.into()])
}

fn unary(call: &mut Call, overload: &Operator, function: &'static Function) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Bool, function, &[x.into()])
}

/// Which elements of a tensor are not 0.
pub fn truth(call: &mut Call, t: &View) -> Result<View> {
    let bools = call.empty(DType::Bool, &t.sizes)?;
    let before = call.returns.len();
    operator(call, Out::Into(&bools), Rule::Bool, &functions::TRUTH, &[Argument::Tensor(AnyTensor(t))])?;
    call.returns.truncate(before);
    Ok(bools)
}

/// Runs an operator of reals that asks of its elements only whether they are 0.
fn of_truth(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let bools = truth(call, t)?;
    let mut args: SmallVec<[Arg; 8]> = call.args.iter().cloned().collect();
    args[0] = Arg::Tensor(bools);
    run_on(call, overload, &args)
}

fn where_(call: &mut Call, overload: &Operator) -> Result<()> {
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
    operator(call, out, Rule::Exact, &functions::WHERE, &[condition.into(), x.into(), y.into()])
}

/// Whether two tensors have one shape and equal elements: of the parts as reals.
fn equal(call: &mut Call, overload: &Operator) -> Result<()> {
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
