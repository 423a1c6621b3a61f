//! Copies, joins and fills of complex tensors, and reading one element.

use crate::check;
use crate::complex::conversion::through_new;
use crate::complex::copy::{checked_copy, convert};
use crate::complex::moves::moves;
use crate::complex::overload::run_on;
use crate::complex::pointwise::{common_dtype, operator as pointwise};
use crate::complex::route::Route;
use crate::movement::copies;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, TensorOrScalar, Tensors};
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::operator::schema::written;
use crate::operator::structured::type_name;
use crate::pointwise::operator::strided;
use crate::tensor::casting::can_cast;
use crate::tensor::promote::{Promoted, result_type};
use dml_compute::complex::copy::{cast, fill_with};
use dml_compute::complex::functions;
use dml_compute::complex::parts::as_bits;
use dml_compute::complex::pointwise::{Rule, parts_of};
use dml_compute::host::{decode_complex, read_number};
use dml_compute::movement::copy;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

pub fn route(name: &str) -> Option<Route> {
    Some(Route::Run(match name {
        "_copy_from" => copy_from,
        "_local_scalar_dense" => local_scalar_dense,
        "fill" => fill,
        "zero" => zero,
        "cat" => cat,
        "masked_fill" => masked_fill,
        _ => return None,
    }))
}

/// The way of a copy is as with reals; what stays as it is moves as bits.
fn copy_from(call: &mut Call, operator: &Operator) -> Result<()> {
    let AnyTensor(src) = operator.argument(call, "self")?;
    let AnyTensor(dst) = operator.argument(call, "dst")?;
    let alike = src.dtype == dst.dtype && src.conjugate == dst.conjugate && src.negative == dst.negative;
    if !alike {
        return convert(call, src, dst);
    }
    let non_blocking: bool = operator.argument(call, "non_blocking")?;
    copies::copy_tensor(call, &as_bits(src), &as_bits(dst), !non_blocking)?;
    call.ret(dst.clone());
    Ok(())
}

/// The value of a tensor's only element, behind `.item()`: waits for the device.
fn local_scalar_dense(call: &mut Call, operator: &Operator) -> Result<()> {
    let t: &View = operator.argument(call, "self")?;
    let mut bytes = [0u8; 16];
    let size = t.element_size() as usize;
    call.download(t.data, &mut bytes[..size])?;
    call.ret_value(Ret::Scalar(decode_complex(t.dtype, &bytes[..size])));
    Ok(())
}

/// Sets every element, of an expanded tensor too.
fn fill(call: &mut Call, operator: &Operator) -> Result<()> {
    let out: &View = operator.argument(call, "self")?;
    if !out.dtype.is_complex() {
        return fill_reals(call, operator, out);
    }
    let value = match operator.argument(call, "value")? {
        TensorOrScalar::Scalar(n) => n,
        TensorOrScalar::Tensor(t) if t.dim() == 0 && t.location == Location::Host => read_number(&t)?,
        TensorOrScalar::Tensor(AnyTensor(t)) => {
            check!(
                t.dim() == 0,
                Runtime,
                "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                t.dim()
            );
            call.check_place(t)?;
            checked_copy(call, t, out)?;
            call.ret(out.clone());
            return Ok(());
        }
    };
    let (re, im) = parts_of(value);
    check_all_fit(&[Scalar::Double(re), Scalar::Double(im)], out.dtype.real())?;
    fill_with(call, out, value)?;
    call.ret(out.clone());
    Ok(())
}

/// Sets every element of a tensor of reals to a complex number: one without an imaginary part, or
/// the real part of a tensor's.
fn fill_reals(call: &mut Call, operator: &Operator, out: &View) -> Result<()> {
    let value = match operator.argument(call, "value")? {
        TensorOrScalar::Tensor(AnyTensor(t)) => {
            if t.location == Location::Host || t.dim() > 0 {
                return Err(Error::Fallback("a complex tensor as the value of reals".into()));
            }
            call.check_place(t)?;
            checked_copy(call, t, out)?;
            call.ret(out.clone());
            return Ok(());
        }
        TensorOrScalar::Scalar(n) => n,
    };
    let (re, im) = parts_of(value);
    check!(
        im == 0.0 || out.dtype == DType::Bool,
        Runtime,
        "value cannot be converted to type {} without overflow",
        type_name(out.dtype)
    );
    let real = if out.dtype == DType::Bool { Scalar::Bool(re != 0.0 || im != 0.0) } else { Scalar::Double(re) };
    let args: SmallVec<[Arg; 2]> = [call.args[0].clone(), Arg::Scalar(real)].into_iter().collect();
    run_on(call, operator, &args)
}

fn zero(call: &mut Call, operator: &Operator) -> Result<()> {
    let out: &View = operator.argument(call, "self")?;
    copy::fill_with(call, &as_bits(&dml_compute::view::overlap::unexpanded(out)), Scalar::Int(0))?;
    call.ret(out.clone());
    Ok(())
}

/// Joins tensors in the dtype in which they meet: their bits, once they are of it.
fn cat(call: &mut Call, operator: &Operator) -> Result<()> {
    let tensors: Tensors = operator.argument(call, "tensors")?;
    let promoted: SmallVec<[Promoted; 8]> = tensors.iter().map(|t| Promoted::Tensor(t)).collect();
    let common = result_type(&promoted, call.host.default_dtype());
    let mut args: SmallVec<[Arg; 3]> = call.args.iter().cloned().collect();
    let given = operator.out(call)?.given().filter(|given| given.dtype != common);
    let Some(given) = given else {
        return cat_alike(call, operator, &tensors, common, &mut args);
    };
    check!(
        can_cast(common, given.dtype),
        Type,
        "torch.cat(): input types can't be cast to the desired output type {}",
        given.dtype
    );
    let place = written(operator.schema).first;
    through_new(call, given, common, |call, new| {
        args[place] = Arg::Tensor(new.clone());
        if common.is_complex() {
            cat_alike(call, operator, &tensors, common, &mut args)?;
        } else {
            run_on(call, operator, &args)?;
        }
        match call.returns.pop() {
            // What moved as bits still is.
            Some(Ret::Tensor(joined)) => Ok(View { dtype: common, ..joined }),
            _ => Err(Error::Fallback("cat returned no tensor".into())),
        }
    })
}

/// Joins tensors once they are all of one complex dtype.
fn cat_alike(call: &mut Call, operator: &Operator, tensors: &[&View], dtype: DType, args: &mut [Arg]) -> Result<()> {
    let alike =
        tensors.iter().map(|t| cast(call, t, dtype).map(Some)).collect::<Result<Vec<_>, dml_compute::Error>>()?;
    args[0] = Arg::Tensors(alike);
    let mut inner = call.with_arguments(args);
    moves(&mut inner, operator)?;
    let returns = inner.returns;
    call.returns = returns;
    Ok(())
}

/// `value` where the mask is true. It is of the tensor's dtype or becomes so.
fn masked_fill(call: &mut Call, operator: &Operator) -> Result<()> {
    let t: AnyTensor = operator.argument(call, "self")?;
    let mask: AnyTensor = operator.argument(call, "mask")?;
    let value: TensorOrScalar = operator.argument(call, "value")?;
    let dim = if let TensorOrScalar::Tensor(value) = value { value.dim() } else { 0 };
    let arguments = [t.into(), mask.into(), value.into()];
    if mask.dtype != DType::Bool || dim > 0 || common_dtype(call, &arguments) != t.dtype {
        return Err(Error::Fallback("masked_fill of these dtypes".into()));
    }
    // A new result is contiguous, as on the CPU.
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    let mut new = None;
    let out = strided(call, operator.out(call)?, &mut new, t.dtype, (&sizes, &View::contiguous_strides(&sizes)))?;
    pointwise(call, out, Rule::Complex, &functions::MASKED_FILL, &arguments)
}
