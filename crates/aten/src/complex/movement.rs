//! Copies, concatenations and fills of complex tensors, and reading one element.

use crate::check;
use crate::complex::bit_copies::run_as_bits;
use crate::complex::conversion::run_through_temporary;
use crate::complex::copy::{checked_copy, convert};
use crate::complex::overload::run_on;
use crate::complex::pointwise::{common_dtype, operator as pointwise};
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
use dml_compute::complex::parts::as_bits;
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::host::{decode_complex, read_number};
use dml_compute::movement::copy;
use dml_compute::pointwise::complex as functions;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

/// Copies as for reals; unchanged elements are copied as bits.
pub fn copy_from(call: &mut Call, operator: &Operator) -> Result<()> {
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

/// The value of a tensor's only element, for `.item()`: waits for the device.
pub fn local_scalar_dense(call: &mut Call, operator: &Operator) -> Result<()> {
    let t: &View = operator.argument(call, "self")?;
    let mut bytes = [0u8; 16];
    let size = t.element_size() as usize;
    call.download(t.data, &mut bytes[..size])?;
    call.ret_value(Ret::Scalar(decode_complex(t.dtype, &bytes[..size])));
    Ok(())
}

/// Sets every element, also of an expanded tensor.
pub fn fill(call: &mut Call, operator: &Operator) -> Result<()> {
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
    let (re, im) = parts_of_number(value);
    check_all_fit(&[Scalar::Double(re), Scalar::Double(im)], out.dtype.real())?;
    fill_with(call, out, value)?;
    call.ret(out.clone());
    Ok(())
}

/// Sets every element of a real tensor to a complex number: a scalar without an imaginary part, or
/// the real part of a tensor's element.
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
    let (re, im) = parts_of_number(value);
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

/// Sets every element to 0.
pub fn zero(call: &mut Call, operator: &Operator) -> Result<()> {
    let out: &View = operator.argument(call, "self")?;
    copy::fill_with(call, &as_bits(&dml_compute::view::overlap::unexpanded(out)), Scalar::Int(0))?;
    call.ret(out.clone());
    Ok(())
}

/// Concatenates tensors in their common dtype: as bits, after conversion to it.
pub fn cat(call: &mut Call, operator: &Operator) -> Result<()> {
    let tensors: Tensors = operator.argument(call, "tensors")?;
    let promoted: SmallVec<[Promoted; 8]> = tensors.iter().map(|t| Promoted::Tensor(t)).collect();
    let common = result_type(&promoted, call.host.default_dtype());
    let mut args: SmallVec<[Arg; 3]> = call.args.iter().cloned().collect();
    let given = operator.out(call)?.given().filter(|given| given.dtype != common);
    let Some(given) = given else {
        return cat_same_dtype(call, operator, &tensors, common, &mut args);
    };
    check!(
        can_cast(common, given.dtype),
        Type,
        "torch.cat(): input types can't be cast to the desired output type {}",
        given.dtype
    );
    let first_output = written(operator.schema).first;
    run_through_temporary(call, given, common, |call, new| {
        args[first_output] = Arg::Tensor(new.clone());
        if common.is_complex() {
            cat_same_dtype(call, operator, &tensors, common, &mut args)?;
        } else {
            run_on(call, operator, &args)?;
        }
        match call.returns.pop() {
            // A result that was copied as bits still has the integer dtype.
            Some(Ret::Tensor(complex_from_parts)) => Ok(View { dtype: common, ..complex_from_parts }),
            _ => Err(Error::Fallback("cat returned no tensor".into())),
        }
    })
}

/// Concatenates tensors that have been converted to one complex dtype.
fn cat_same_dtype(
    call: &mut Call,
    operator: &Operator,
    tensors: &[&View],
    dtype: DType,
    args: &mut [Arg],
) -> Result<()> {
    let alike =
        tensors.iter().map(|t| cast(call, t, dtype).map(Some)).collect::<Result<Vec<_>, dml_compute::Error>>()?;
    args[0] = Arg::Tensors(alike);
    let mut inner = call.with_arguments(args);
    run_as_bits(&mut inner, operator)?;
    let returns = inner.returns;
    call.returns = returns;
    Ok(())
}

/// `value`, converted to the tensor's dtype, where the mask is true.
pub fn masked_fill(call: &mut Call, operator: &Operator) -> Result<()> {
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
    pointwise(call, out, &functions::MASKED_FILL, &arguments)
}
