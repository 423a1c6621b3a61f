//! Operators on 8-bit floats, which are storage formats: as on the CPU, few operators compute with
//! them.

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

/// Runs an operator on arguments of which at least one is a tensor of 8-bit floats.
///
/// # Errors
/// [`Error::Fallback`] if the operator has no kernel for them.
pub fn run_float8(call: &mut Call, operator: &Operator) -> Result<()> {
    match operator.fields.float8 {
        Some(run) => run(call, operator),
        None => Err(Error::Fallback(format!("{} of floats of 8 bits", operator.name))),
    }
}

/// The operator's own function, which loads and stores any dtype.
pub fn own(call: &mut Call, operator: &Operator) -> Result<()> {
    (operator.run)(call)
}

/// [`own`], for tensors that all have the same dtype.
pub fn of_one_dtype(call: &mut Call, operator: &Operator) -> Result<()> {
    only_dtype(call, operator, DType::is_float8)?;
    (operator.run)(call)
}

/// An operator that only copies elements runs on their bits as integers.
pub fn run_as_bits(call: &mut Call, operator: &Operator) -> Result<()> {
    let dtype = only_dtype(call, operator, DType::is_float8)?;
    check_outs(call, operator, dtype)?;
    run_on_bits(call, operator, dtype, DType::U8)
}

/// Operands are tensors of one dtype, or one tensor and a number.
pub fn choose(call: &mut Call, operator: &Operator) -> Result<()> {
    if only_dtype(call, operator, DType::is_float8).is_ok() {
        return run_as_bits(call, operator);
    }
    let number = |argument: &Arg| matches!(argument, Arg::Tensor(t) if !t.dtype.is_float8() && t.weak);
    let condition = |argument: &Arg| matches!(argument, Arg::Tensor(t) if t.dtype == DType::Bool);
    let float8 = |argument: &Arg| matches!(argument, Arg::Tensor(t) if t.dtype.is_float8());
    if call.args.iter().all(|argument| number(argument) || condition(argument) || float8(argument)) {
        return (operator.run)(call);
    }
    Err(Error::Fallback(format!("{} of several dtypes", operator.name)))
}

/// Assigned values are copied as bits, unless they are accumulated.
pub fn index_put(call: &mut Call, operator: &Operator) -> Result<()> {
    if operator.argument(call, "accumulate")? {
        return Err(Error::Fallback(format!("{} that adds floats of 8 bits", operator.name)));
    }
    run_as_bits(call, operator)
}

/// Numbers lose their sign; zero and NaN keep it, as on the CPU.
pub fn abs(call: &mut Call, operator: &Operator) -> Result<()> {
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

/// Whether an argument has a tensor of 8-bit floats.
pub fn is_float8(argument: &Arg) -> bool {
    let tensors: SmallVec<[&View; 4]> = match argument {
        Arg::Tensor(t) => [t].into_iter().collect(),
        Arg::Tensors(list) => list.iter().flatten().collect(),
        _ => return false,
    };
    tensors.iter().any(|t| t.dtype.is_float8())
}
