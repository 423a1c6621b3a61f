//! Dense operators on values of any dtype, of which the operators of sparse tensors are composed.

use crate::complex;
use crate::indexing::{gather, index, index_select, scatter};
use crate::matmul::matrix_operators;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out, check_device};
use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::pointwise::operator::Argument;
use crate::pointwise::{arithmetic, division};
use crate::special_dtypes::dispatch;
use crate::{check, pointwise};
use dml_compute::complex::copy::{complex_as_bits, device_copy};
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::movement::copy::{self, fill_with};
use dml_compute::pointwise::arithmetic::MUL;
use dml_compute::pointwise::complex as elementwise;
use dml_compute::pointwise::kernel::{Operand, run_operands};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

/// `self + alpha * other`
pub const ADD: &Operator = named(arithmetic::OPERATORS, "aten::add.Tensor");
/// `self * other`
pub const MULTIPLY: &Operator = named(arithmetic::OPERATORS, "aten::mul.Tensor");
/// `self / other`
pub const DIVIDE: &Operator = named(division::OPERATORS, "aten::div.Tensor");
/// The largest of `self` and a number.
pub const CLAMP_MIN: &Operator = named(pointwise::selection::OPERATORS, "aten::clamp_min");
/// Products of matrices of a batch.
pub const BMM: &Operator = named(matrix_operators::OPERATORS, "aten::bmm");
/// `self` where the condition holds, `other` elsewhere.
pub const WHERE: &Operator = named(pointwise::selection::OPERATORS, "aten::where.self");
/// Elements of `self` at positions.
const INDEX: &Operator = named(index::OPERATORS, "aten::index.Tensor");
/// Slices of `self` along `dim`.
const INDEX_SELECT: &Operator = named(index_select::OPERATORS, "aten::index_select");
/// Adds slices to those of `self`.
pub const INDEX_ADD: &Operator = named(index_select::OPERATORS, "aten::index_add_");
/// Elements of `self` along `dim`.
pub const GATHER: &Operator = named(gather::OPERATORS, "aten::gather");
/// Adds elements to those of `self`.
pub const SCATTER_ADD: &Operator = named(scatter::OPERATORS, "aten::scatter_add_");

/// The overload with this name in a table. A name that the table lacks does not compile.
const fn named(table: &'static [Operator], name: &str) -> &'static Operator {
    let mut i = 0;
    while i < table.len() {
        if is(table[i].name.as_bytes(), name.as_bytes()) {
            return &table[i];
        }
        i += 1;
    }
    panic!("the table has no overload of this name")
}

const fn is(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Runs an operator as a part of a call, on all arguments of its schema, and returns its result.
///
/// # Errors
/// The operator's.
pub fn run(call: &Call, operator: &Operator, args: &[Arg]) -> Result<View> {
    let mut inner = operator.call(args, call.device, call.host);
    inner.context.phase = call.phase;
    dispatch(&mut inner, operator)?;
    inner.first_result()
}

/// An argument.
pub fn tensor(t: &View) -> Arg<'static> {
    Arg::Tensor(t.clone())
}

/// An argument.
pub fn integer(n: i64) -> Arg<'static> {
    Arg::Scalar(Number::Int(n))
}

/// The slices of `t` along `dim` with these indices.
///
/// # Errors
/// Those of index_select.
pub fn select(call: &Call, t: &View, dim: i64, indices: &View) -> Result<View> {
    let found = run(call, INDEX_SELECT, &[tensor(t), integer(dim), tensor(indices)])?;
    // Complex numbers, for example, are selected as bits.
    Ok(View { dtype: t.dtype, ..found })
}

/// The elements of `t`, or slices, of which each of `indices` has the positions in a dimension.
///
/// # Errors
/// Those of indexing.
pub fn elements(call: &Call, t: &View, indices: Vec<View>) -> Result<View> {
    let found = run(call, INDEX, &[tensor(t), Arg::Tensors(indices.into_iter().map(Some).collect())])?;
    Ok(View { dtype: t.dtype, ..found })
}

/// Zeros of any dtype.
///
/// # Errors
/// Those of an allocation.
pub fn zeros(call: &Call, dtype: DType, sizes: &[i64]) -> Result<View> {
    let out = call.empty(dtype, sizes)?;
    fill_with(call, &complex_as_bits(&out), Number::Int(0))?;
    Ok(out)
}

/// The tensor, of reals, in any dtype.
///
/// # Errors
/// Those of an allocation.
pub fn cast(call: &Call, t: &View, dtype: DType) -> Result<View> {
    if !dtype.is_complex() {
        return Ok(copy::cast(call, t, dtype)?);
    }
    let out = call.empty(dtype, &t.sizes)?;
    device_copy(call, t, &out)?;
    Ok(out)
}

/// `t * factor` for floats and complex numbers.
pub fn times(call: &Call, t: &View, factor: Number) -> Result<View> {
    if t.dtype.is_complex() {
        let arguments = [Argument::Tensor(AnyTensor(t)), Argument::Scalar(factor)];
        return call.result_of(|call| complex::pointwise::operator(call, Out::New, &elementwise::MUL, &arguments));
    }
    let out = call.empty(t.dtype, &t.sizes)?;
    // The factor is not rounded to 16 bits.
    let common = if matches!(t.dtype, DType::F16 | DType::BF16) { DType::F32 } else { t.dtype };
    run_operands(call, (&MUL).into(), &[&out], &[Operand::Tensor(t), Operand::Number(factor)], common)?;
    Ok(out)
}

/// `alpha * t + beta * addend`, where a factor of 1 is not multiplied by, and a tensor with factor
/// 0 not read.
pub fn combined(call: &Call, t: View, alpha: Number, addend: Option<&View>, beta: Number) -> Result<View> {
    let t = if parts_of_number(alpha) == (1.0, 0.0) { t } else { times(call, &t, alpha)? };
    match addend.filter(|_| parts_of_number(beta) != (0.0, 0.0)) {
        None => Ok(t),
        Some(addend) => run(call, ADD, &[Arg::Tensor(t), tensor(addend), Arg::Scalar(beta)]),
    }
}

/// Checks that factors of reals are no complex numbers.
pub fn check_factors(dtype: DType, factors: [Number; 2]) -> Result<()> {
    let fits = |n: &Number| dtype.is_complex() || parts_of_number(*n).1 == 0.0;
    let name = crate::operator::structured::type_name(dtype);
    check!(factors.iter().all(fits), Runtime, "value cannot be converted to type {name} without overflow");
    Ok(())
}

/// The tensor, which has to be on the call's device; PyTorch's operator `name` is named if not.
pub fn here<'a>(call: &Call, AnyTensor(t): AnyTensor<'a>, name: &str) -> Result<&'a View> {
    check_device(name, call.device.index() as u8, t)?;
    Ok(t)
}
