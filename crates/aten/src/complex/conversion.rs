//! Conversions between complex numbers and reals: for a result of the other kind, requested by
//! `dtype=` or `out=`.

use crate::complex::by_parts::by_parts;
use crate::complex::copy::checked_copy;
use crate::complex::reduction::prod;
use crate::complex::scan::running_product;
use crate::operator::argument::Out;
use crate::operator::call::{Arg, Call};
use crate::operator::error::{Error, Result};
use crate::operator::route::{Allows, Complex};
use crate::operator::{Operator, schema, structured};
use dml_compute::complex::copy::cast;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// The arguments of an operator that [converts first](Complex::Converted), after the conversion;
/// `None` if there is nothing to convert.
pub fn converted<'a>(
    call: &mut Call<'a>,
    operator: &Operator,
    allows: Allows,
) -> Result<Option<SmallVec<[Arg<'a>; 8]>>> {
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
    if !allows(t.dtype, dtype, asked) {
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

fn whole(dtype: DType) -> bool {
    !dtype.is_float() && !dtype.is_complex()
}

/// Sums by parts, with `self` in the dtype of the result.
pub const SUM: Complex = Complex::Converted { run: by_parts, allows: |_, _, _| true };

/// [`SUM`] ignoring NaN, which can be distinguished from numbers only in reals.
pub const NAN_SUM: Complex = Complex::Converted { run: by_parts, allows: |from, _, _| whole(from) };

/// Means by parts; means of integers and means as integers are errors.
pub const MEAN: Complex =
    Complex::Converted { run: by_parts, allows: |from, to, asked| !whole(to) && (asked.is_some() || !whole(from)) };

/// Products, with `self` in the dtype of the result.
pub const PRODUCT: Complex = Complex::Converted { run: prod, allows: |_, _, _| true };

/// Running products, with `self` in the dtype of the result.
pub const RUNNING_PRODUCT: Complex = Complex::Converted { run: running_product, allows: |_, _, _| true };

/// Whether all arguments are real, with tensors among them, and `out=` is complex.
pub fn reals_into_complex(call: &Call, operator: &Operator) -> bool {
    let written = schema::written(operator.schema);
    let inputs = || call.args.iter().enumerate().filter(|(i, _)| !written.contains(*i)).map(|(_, argument)| argument);
    let tensors = |argument: &Arg| matches!(argument, Arg::Tensor(_) | Arg::Tensors(_));
    written.count > 0 && !written.in_place && inputs().any(tensors) && !inputs().any(Arg::is_special)
}

/// Runs an operator whose result is written to a tensor of another dtype, which is resized, through
/// a temporary tensor.
pub fn run_through_temporary(
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
