//! The `out=` argument of operators that PyTorch calls structured: its dtype must be the result's.

use crate::check;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

/// Like [`Call::result`], for an operator that does not cast its result.
pub fn result(call: &Call, given: Option<&View>, dtype: DType, sizes: &[i64]) -> Result<View> {
    check_given(given, dtype)?;
    call.result(given, dtype, sizes)
}

/// Like [`Call::result_strided`], for an operator that does not cast its result.
pub fn result_strided(
    call: &Call,
    given: Option<&View>,
    dtype: DType,
    sizes: &[i64],
    strides: impl FnOnce() -> Dims,
) -> Result<View> {
    check_given(given, dtype)?;
    call.result_strided(given, dtype, sizes, strides)
}

/// Checks the dtype of the `out=` argument, if there is one.
pub fn check_given(given: Option<&View>, dtype: DType) -> Result<()> {
    match given {
        Some(t) if t.dtype != dtype => wrong_dtype(dtype, t.dtype),
        _ => Ok(()),
    }
}

/// Checks that a tensor that is written has the shape to which the operands broadcast.
pub fn check_shape(written: &[i64], broadcast: &[i64]) -> Result<()> {
    check!(
        written == broadcast,
        Runtime,
        "output with shape {written:?} doesn't match the broadcast shape {broadcast:?}"
    );
    Ok(())
}

/// The error for a result with a wrong dtype.
pub fn wrong_dtype(expected: DType, given: DType) -> Result<()> {
    Err(Error::Runtime(format!(
        "Expected out tensor to have dtype {}, but got {} instead",
        type_name(expected),
        type_name(given)
    )))
}

/// Checks the tensor of an in-place operator that is neither pointwise nor casts: its shape and
/// dtype must be the result's.
pub fn check_in_place(t: &View, dtype: DType, sizes: &[i64]) -> Result<()> {
    check!(
        t.dtype == dtype,
        Runtime,
        "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
        type_name(t.dtype),
        type_name(dtype)
    );
    check!(
        t.sizes.as_slice() == sizes,
        Runtime,
        "Bad in-place call: input tensor size {:?} and output tensor size {sizes:?} should match",
        t.sizes.as_slice()
    );
    Ok(())
}

/// Checks the dtype of the `out=` argument of a pointwise operator that does not cast its result:
/// the message differs.
pub fn check_same(out: Out, dtype: DType) -> Result<()> {
    if let Out::Into(t) = out {
        check!(t.dtype == dtype, Runtime, "Found dtype {} but expected {dtype}", t.dtype);
    }
    Ok(())
}

/// Checks the dtypes of the inputs of an operator that does not convert them.
pub fn check_inputs<'t>(inputs: impl IntoIterator<Item = &'t View>, dtype: DType) -> Result<()> {
    for t in inputs {
        check!(t.dtype == dtype, Runtime, "Found dtype {} but expected {dtype}", t.dtype);
    }
    Ok(())
}

/// The C++ type of a dtype's elements, as PyTorch prints it.
pub fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C32 => "c10::complex<c10::Half>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        DType::F8E4M3FN => "c10::Float8_e4m3fn",
        DType::F8E5M2 => "c10::Float8_e5m2",
        DType::F8E4M3FNUZ => "c10::Float8_e4m3fnuz",
        DType::F8E5M2FNUZ => "c10::Float8_e5m2fnuz",
        DType::U16 => "short unsigned int",
        DType::U32 => "unsigned int",
        DType::U64 => "long unsigned int",
    }
}
