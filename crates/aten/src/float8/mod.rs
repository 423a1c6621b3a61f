//! Operators of floats of 8 bits, which are kept and converted: as on the CPU, few operators
//! compute with them.

use crate::operator::Operator;
use crate::operator::call::{Arg, Call};
use crate::operator::error::{Error, Result};
use crate::operator::on_bits::{check_outs, only_dtype, run_on_bits};
use crate::pointwise::operator::result_tensor;
use dml_compute::pointwise::kernel::{self, Input, Operand};
use dml_compute::pointwise::unary::ABS_FLOAT8;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// How an operator is done.
#[derive(Copy, Clone)]
enum Route {
    /// It moves elements: the operator of integers runs on their bits.
    Moves,
    /// The operator of floats does it, which loads and stores any dtype.
    AsItIs,
    /// The same, of tensors that are all of one dtype.
    OfOneDtype,
    /// A function of its own.
    Run(fn(&mut Call, &Operator) -> Result<()>),
}

fn route(name: &str) -> Option<Route> {
    Some(match name {
        "cat" | "flip" | "roll" | "index" | "index_select" | "masked_select" => Route::Moves,
        "_copy_from" | "_local_scalar_dense" | "fill" | "zero" | "isnan" | "any" | "all" | "_scaled_mm" => {
            Route::AsItIs
        }
        "eq" | "ne" | "mul" => Route::OfOneDtype,
        "where" => Route::Run(choose),
        "_index_put_impl" => Route::Run(index_put),
        "abs" => Route::Run(abs),
        _ => return None,
    })
}

/// Runs an operator on arguments of which one is a tensor of floats of 8 bits.
///
/// # Errors
/// [`Error::Fallback`] of an operator that has no kernel for them.
pub fn run_float8(call: &mut Call, operator: &Operator) -> Result<()> {
    match route(operator.base_name()) {
        Some(Route::Moves) => moves(call, operator),
        Some(Route::AsItIs) => (operator.run)(call),
        Some(Route::OfOneDtype) => {
            only_dtype(call, operator, DType::is_float8)?;
            (operator.run)(call)
        }
        Some(Route::Run(run)) => run(call, operator),
        None => Err(Error::Fallback(format!("{} of floats of 8 bits", operator.name))),
    }
}

fn moves(call: &mut Call, operator: &Operator) -> Result<()> {
    let dtype = only_dtype(call, operator, DType::is_float8)?;
    check_outs(call, operator, dtype)?;
    run_on_bits(call, operator, dtype, DType::U8)
}

/// Beside tensors of one dtype it may be between one and a number.
fn choose(call: &mut Call, operator: &Operator) -> Result<()> {
    if only_dtype(call, operator, DType::is_float8).is_ok() {
        return moves(call, operator);
    }
    let number = |argument: &Arg| matches!(argument, Arg::Tensor(t) if !t.dtype.is_float8() && t.weak);
    let condition = |argument: &Arg| matches!(argument, Arg::Tensor(t) if t.dtype == DType::Bool);
    let float8 = |argument: &Arg| matches!(argument, Arg::Tensor(t) if t.dtype.is_float8());
    if call.args.iter().all(|argument| number(argument) || condition(argument) || float8(argument)) {
        return (operator.run)(call);
    }
    Err(Error::Fallback(format!("{} of several dtypes", operator.name)))
}

/// What is put is moved, unless it is added.
fn index_put(call: &mut Call, operator: &Operator) -> Result<()> {
    if operator.argument(call, "accumulate")? {
        return Err(Error::Fallback(format!("{} that adds floats of 8 bits", operator.name)));
    }
    moves(call, operator)
}

/// Numbers lose their sign; zero and NaN keep it, as on the CPU.
fn abs(call: &mut Call, operator: &Operator) -> Result<()> {
    let x: &View = operator.argument(call, "self")?;
    check_outs(call, operator, x.dtype)?;
    if !x.dtype.is_float8() {
        return Err(Error::Fallback(format!("{} into floats of 8 bits", operator.name)));
    }
    let out = result_tensor(call, operator.out(call)?, x.dtype, &[Input::Tensor(x.clone())])?;
    let as_bits = |t: &View| View { dtype: DType::U8, ..t.clone() };
    let (from, to) = (as_bits(x), as_bits(&out));
    kernel::run_operands(call, ABS_FLOAT8.of(x.dtype), &[&to], &[Operand::Tensor(&from)], DType::U8)?;
    call.ret(out);
    Ok(())
}

/// Whether an argument holds a tensor of them.
pub fn is_float8(argument: &Arg) -> bool {
    let tensors: SmallVec<[&View; 4]> = match argument {
        Arg::Tensor(t) => [t].into_iter().collect(),
        Arg::Tensors(list) => list.iter().flatten().collect(),
        _ => return false,
    };
    tensors.iter().any(|t| t.dtype.is_float8())
}
