//! Calls between complex numbers and reals: a result of the other kind that `dtype=` or `out=` asks
//! for.

use crate::complex::copy::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::{Arg, Call};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, schema, structured};
use dml_compute::complex::copy::cast;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// The arguments of an operator that [converts first](converts_first), once that is done; `None`
/// where there is nothing to do.
pub fn converted<'a>(call: &mut Call<'a>, operator: &Operator) -> Result<Option<SmallVec<[Arg<'a>; 8]>>> {
    let t: &View = operator.argument(call, "self")?;
    let asked = operator.dtype_argument(call, "dtype")?;
    let dtype = match operator.out(call)? {
        Out::New => asked.unwrap_or(t.dtype),
        Out::InPlace(_) => {
            structured::check_in_place(t, asked.unwrap_or(t.dtype), &t.sizes)?;
            t.dtype
        }
        Out::Into(out) => {
            structured::check_given(Some(out), asked.unwrap_or(out.dtype))?;
            out.dtype
        }
    };
    if dtype == t.dtype {
        return Ok(None);
    }
    let name = operator.base_name();
    let whole = |dtype: DType| !dtype.is_float() && !dtype.is_complex();
    // Means of and as integers are refused, and NaN is told from other numbers in reals alone.
    let no_mean = name == "mean" && (whole(dtype) || (asked.is_none() && whole(t.dtype)));
    if no_mean || (name == "nansum" && !whole(t.dtype)) {
        return Err(Error::Fallback(format!("{} as {dtype} of {}", operator.name, t.dtype)));
    }
    if t.dtype.is_complex() && !dtype.is_complex() && dtype != DType::Bool {
        call.host.warn("Casting complex values to real discards the imaginary part");
    }
    let t = cast(call, t, dtype)?;
    let args = operator.named(call).map(|(name, argument)| match (name, argument) {
        ("self", _) => Arg::Tensor(t.clone()),
        ("dtype", Arg::Scalar(_)) => Arg::Scalar(Scalar::Int(dtype as i64)),
        (_, other) => other.clone(),
    });
    Ok(Some(args.collect()))
}

/// Whether all that a call takes are reals, tensors among them, and what `out=` gives is complex.
pub fn reals_into_complex(call: &Call, operator: &Operator) -> bool {
    let written = schema::written(operator.schema);
    let inputs = || call.args.iter().enumerate().filter(|(i, _)| !written.contains(*i)).map(|(_, argument)| argument);
    let tensors = |argument: &Arg| matches!(argument, Arg::Tensor(_) | Arg::Tensors(_));
    written.count > 0 && !written.in_place && inputs().any(tensors) && !inputs().any(Arg::is_special)
}

/// Runs an operator whose result goes into a tensor of another dtype, which is resized, by way of a
/// new one of its own.
pub fn through_new(
    call: &mut Call,
    given: &View,
    dtype: DType,
    run: impl FnOnce(&mut Call, &View) -> Result<View>,
) -> Result<()> {
    let new = call.empty(dtype, &[0])?;
    let result = run(call, &new)?;
    let target = call.given_strided(given, dtype, &result.sizes, || View::contiguous_strides(&result.sizes))?;
    checked_copy(call, &result, &target)?;
    call.ret(target);
    Ok(())
}
