//! Runs operators on complex tensors according to their tables.

use crate::complex::conversion::{converted, reals_into_complex};
use crate::complex::copy::checked_copy;
use crate::complex::functions;
use crate::complex::lists::run_for_each_tensor;
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::route::Complex;
use crate::operator::schema::written;
use dml_compute::view::View;
use smallvec::SmallVec;

/// Runs an operator on arguments of which at least one is complex.
///
/// # Errors
/// [`Error::Fallback`] if the operator has no kernel for them.
pub fn run_complex(call: &mut Call, operator: &Operator) -> Result<()> {
    let of_reals = |call: &mut Call| (operator.run)(call);
    match operator.fields.complex {
        Complex::AsGiven(run) => run(call, operator),
        Complex::Each(table, name) => run_for_each_tensor(call, operator, table, name),
        Complex::Converted { run, allows } => match converted(call, operator, allows)? {
            None => on_resolved(call, operator, |call| run(call, operator)),
            Some(args) => with_arguments(call, &args, |call| {
                if call.args.iter().any(Arg::is_special) { run_complex(call, operator) } else { of_reals(call) }
            }),
        },
        Complex::OfReals(run) => on_resolved(call, operator, |call| run(call, operator)),
        // Functions of reals compute it, or fall back to the CPU.
        _ if reals_into_complex(call, operator) => of_reals(call),
        Complex::None => Err(Error::Fallback(format!("{} of complex numbers", operator.name))),
        Complex::Own => on_resolved(call, operator, of_reals),
        Complex::Run(run) => on_resolved(call, operator, |call| run(call, operator)),
        Complex::Pointwise(function) => {
            on_resolved(call, operator, |call| functions::pointwise(call, operator, function))
        }
    }
}

/// Runs a call after resolving conjugates and negatives among its arguments.
fn on_resolved(call: &mut Call, operator: &Operator, run: impl FnOnce(&mut Call) -> Result<()>) -> Result<()> {
    match resolve_arguments(call)? {
        None => run(call),
        Some(args) => {
            with_arguments(call, &args, run)?;
            copy_results_back(call, operator)
        }
    }
}

/// Runs a call with other arguments, and returns its results.
fn with_arguments(call: &mut Call, args: &[Arg], run: impl FnOnce(&mut Call) -> Result<()>) -> Result<()> {
    let returns = {
        let mut inner = call.with_arguments(args);
        run(&mut inner)?;
        inner.returns
    };
    call.returns = returns;
    Ok(())
}

/// Whether a tensor has an unresolved conjugate or negative bit.
fn has_bits(t: &View) -> bool {
    t.conjugate || t.negative
}

/// The arguments with conjugates and negatives resolved, if there are any: PyTorch does not resolve
/// them for products, and for operators that it considers views.
fn resolve_arguments<'a>(call: &Call<'a>) -> Result<Option<SmallVec<[Arg<'a>; 8]>>> {
    if !call.args.iter().any(|argument| argument.has_tensor(has_bits)) {
        return Ok(None);
    }
    let resolve = |t: &View| -> Result<View> {
        if !has_bits(t) {
            return Ok(t.clone());
        }
        call.check_place(t)?;
        let plain = call.empty(t.dtype, &t.sizes)?;
        checked_copy(call, t, &plain)?;
        Ok(plain)
    };
    let mut args = SmallVec::new();
    for argument in call.args {
        args.push(match argument {
            Arg::Tensor(t) => Arg::Tensor(resolve(t)?),
            Arg::Tensors(list) => {
                Arg::Tensors(list.iter().map(|t| t.as_ref().map(resolve).transpose()).collect::<Result<_>>()?)
            }
            other => other.clone(),
        });
    }
    Ok(Some(args))
}

/// Copies results to `out=` tensors with a conjugate or negative bit: the operator wrote a plain
/// tensor instead.
fn copy_results_back(call: &mut Call, operator: &Operator) -> Result<()> {
    let written = written(operator.schema);
    let mut returns = std::mem::take(&mut call.returns);
    for (result, output) in returns.iter_mut().zip(&call.args[written.first..written.first + written.count]) {
        let (Ret::Tensor(result), Arg::Tensor(output)) = (result, output) else { continue };
        if has_bits(output) {
            if result.sizes != output.sizes {
                return Err(Error::Fallback(format!("{} resizes a conjugate or a negative", operator.name)));
            }
            // A result that was copied as bits still has the integer dtype.
            checked_copy(call, &View { dtype: output.dtype, ..result.clone() }, output)?;
            *result = output.clone();
        }
    }
    call.returns = returns;
    Ok(())
}
