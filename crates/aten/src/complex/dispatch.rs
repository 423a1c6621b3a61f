//! Which way each operator of complex tensors takes.

use crate::complex::by_parts::{by_parts, index_add};
use crate::complex::conversion::{converted, reals_into_complex};
use crate::complex::copy::checked_copy;
use crate::complex::lists::one_by_one;
use crate::complex::moves::moves;
use crate::complex::route::Route;
use crate::complex::{
    arithmetic, comparison, creation, exponential, functions, log_cumsum_exp, movement, product, reduction, scan,
};
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::schema::written;
use dml_compute::complex::conversion::converts_first;
use dml_compute::complex::dispatch::{has_bits, takes_complex};
use dml_compute::view::View;
use smallvec::SmallVec;

/// The operators that only move elements, and those that are linear with real coefficients.
fn of_any_element(name: &str) -> Option<Route> {
    Some(match name {
        "flip" | "roll" | "gather" | "index" | "index_select" | "take" | "masked_select" | "tril" | "triu"
        | "index_copy" | "masked_scatter" | "pixel_shuffle" | "pixel_unshuffle" | "channel_shuffle"
        | "reflection_pad1d" | "reflection_pad2d" | "reflection_pad3d" | "replication_pad1d" | "replication_pad2d"
        | "replication_pad3d" => Route::Moves,
        "sum"
        | "mean"
        | "nansum"
        | "cumsum"
        | "trace"
        | "scatter_add"
        | "im2col"
        | "col2im"
        | "put"
        | "_index_put_impl"
        | "unfold_backward"
        | "reflection_pad1d_backward"
        | "reflection_pad2d_backward"
        | "reflection_pad3d_backward"
        | "replication_pad1d_backward"
        | "replication_pad2d_backward"
        | "replication_pad3d_backward"
        | "index_fill"
        | "scatter"
        | "linspace" => Route::ByParts,
        "index_add" => Route::Run(index_add),
        _ => return None,
    })
}

fn route(name: &str) -> Option<Route> {
    movement::route(name)
        .or_else(|| arithmetic::route(name))
        .or_else(|| comparison::route(name))
        .or_else(|| creation::route(name))
        .or_else(|| product::route(name))
        .or_else(|| reduction::route(name))
        .or_else(|| scan::route(name))
        .or_else(|| log_cumsum_exp::route(name))
        .or_else(|| functions::route(name))
        .or_else(|| exponential::route(name))
        .or_else(|| takes_complex(name).then_some(Route::Run(|call, overload| (overload.run)(call))))
        .or_else(|| of_any_element(name))
}

/// Runs an operator, one of `all`, on arguments of which one is complex.
///
/// # Errors
/// [`Error::Fallback`] of an operator that has no kernel for them.
pub fn run_complex(call: &mut Call, operator: &Operator, all: &[&'static Operator]) -> Result<()> {
    if operator.base_name().starts_with("_foreach_") {
        return one_by_one(call, operator, all, |call, single| run_complex(call, single, &[]));
    }
    let name = operator.base_name();
    if converts_first(name) {
        if let Some(args) = converted(call, operator)? {
            return with_arguments(call, &args, |inner| {
                if inner.args.iter().any(Arg::is_special) {
                    run_complex(inner, operator, all)
                } else {
                    (operator.run)(inner)
                }
            });
        }
    } else if !matches!(name, "cat" | "normal") && reals_into_complex(call, operator) {
        // Functions of reals take it, or leave it to the CPU.
        return (operator.run)(call);
    }
    let Some(route) = route(name) else {
        return Err(Error::Fallback(format!("{} of complex numbers", operator.name)));
    };
    // Copies alone look at the bits that stand for a conjugate or a negative.
    if name != "_copy_from"
        && let Some(args) = resolved(call)?
    {
        with_arguments(call, &args, |inner| run(inner, operator, route))?;
        return write_back(call, operator);
    }
    run(call, operator, route)
}

/// Runs a call with other arguments, and returns what it returns.
fn with_arguments(call: &mut Call, args: &[Arg], run: impl FnOnce(&mut Call) -> Result<()>) -> Result<()> {
    let returns = {
        let mut inner = call.with_arguments(args);
        run(&mut inner)?;
        inner.returns
    };
    call.returns = returns;
    Ok(())
}

fn run(call: &mut Call, operator: &Operator, route: Route) -> Result<()> {
    match route {
        Route::Moves => moves(call, operator),
        Route::ByParts => by_parts(call, operator),
        Route::Run(run) => run(call, operator),
        Route::Unary(rule, function) => functions::unary(call, operator, rule, function),
    }
}

/// The arguments with conjugates and negatives written out, where there are any: PyTorch leaves
/// them to products, and to what it takes for views.
fn resolved<'a>(call: &Call<'a>) -> Result<Option<SmallVec<[Arg<'a>; 8]>>> {
    let any = call.args.iter().any(|argument| match argument {
        Arg::Tensor(t) => has_bits(t),
        Arg::Tensors(list) => list.iter().flatten().any(has_bits),
        _ => false,
    });
    if !any {
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

/// Copies results to where they belong if that is a conjugate or a negative: the operator wrote a
/// plain tensor instead.
fn write_back(call: &mut Call, operator: &Operator) -> Result<()> {
    let written = written(operator.schema);
    let mut returns = std::mem::take(&mut call.returns);
    for (result, place) in returns.iter_mut().zip(&call.args[written.first..written.first + written.count]) {
        let (Ret::Tensor(result), Arg::Tensor(place)) = (result, place) else { continue };
        if has_bits(place) {
            if result.sizes != place.sizes {
                return Err(Error::Fallback(format!("{} resizes a conjugate or a negative", operator.name)));
            }
            // What moved as bits still is.
            checked_copy(call, &View { dtype: place.dtype, ..result.clone() }, place)?;
            *result = place.clone();
        }
    }
    call.returns = returns;
    Ok(())
}
