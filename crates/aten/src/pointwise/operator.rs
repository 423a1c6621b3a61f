//! Pointwise operators: conversion of arguments to operands, type promotion, and the result's
//! shape, strides and dtype.

use crate::check;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::conversion::{check_all_fit, check_fits};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::tensor::casting::can_cast;
use crate::tensor::overlap;
use crate::tensor::promote::{Promoted, check_promotable, result_type, unrounded};
use dml_compute::bounds::rounded;
use dml_compute::complex::parts;
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::function::{Function, Variant};
use dml_compute::pointwise::kernel::{Input, Operand, Operands, operands, run_operands, tensors};
use dml_compute::pointwise::operator::{Rule, new_strides};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

/// A tensor as an input: 0-dim CPU tensors become numbers.
pub fn input(call: &Call, t: &View) -> Result<Input> {
    Ok(match operand_of(call, t)? {
        Operand::Tensor(t) => Input::Tensor(t.clone()),
        Operand::Number(n) => Input::Number(n, t.dtype),
    })
}

/// A tensor as an operand: 0-dim CPU tensors become numbers.
pub fn operand_of<'t>(call: &Call, t: &'t View) -> Result<Operand<'t>> {
    if t.location == Location::Host && t.dim() == 0 {
        return Ok(Operand::Number(dml_compute::host::read_number(t)?));
    }
    call.check_place(t)?;
    Ok(Operand::Tensor(t))
}

/// Checks that a tensor has a floating dtype, for operators that do not promote integers.
pub fn check_float(t: &View, name: &str) -> Result<()> {
    let dtype = t.dtype;
    check!(dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// [`operator`] for tensors with a floating common dtype, as an activation and its gradient; other
/// dtypes are errors. With a single tensor nothing is cast to `out=`, as on the CPU.
pub fn float_operator(
    call: &mut Call,
    out: Out,
    function: &'static Function,
    tensors: &[AnyTensor],
    numbers: &[Number],
) -> Result<()> {
    let name = function.name;
    let check = |common: DType| {
        check!(common.is_float(), NotImplemented, "\"{name}\" not implemented for '{common}'");
        check_all_fit(numbers, accumulator(common))
    };
    let rule = if tensors.len() == 1 { Rule::Exact } else { Rule::Promote };
    ruled_operator(call, out, rule, function.into(), &arguments_of(tensors, numbers), &check)
}

/// The common dtype of tensors.
pub fn common_dtype(call: &Call, tensors: &[AnyTensor]) -> DType {
    let promoted: SmallVec<[Promoted; 4]> = tensors.iter().map(|t| Promoted::Tensor(t)).collect();
    result_type(&promoted, call.host.default_dtype())
}

/// Checks that the tensors' common dtype is not a 16-bit float, for operators that the CPU has only
/// for wider ones.
pub fn check_not_half(call: &Call, tensors: &[AnyTensor], name: &str) -> Result<()> {
    let dtype = common_dtype(call, tensors);
    let name = name.strip_prefix("special_").unwrap_or(name);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    check!(!half, NotImplemented, "\"{name}_cpu\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that a tensor is not a bool tensor.
pub fn check_not_bool(t: &View, name: &str) -> Result<()> {
    let dtype = t.dtype;
    check!(dtype != DType::Bool, NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that a tensor has an integer or bool dtype.
pub fn check_integral(t: &View, name: &str) -> Result<()> {
    let dtype = t.dtype;
    check!(!dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// An argument of a pointwise operator.
#[derive(Copy, Clone, Debug)]
pub enum Argument<'a> {
    /// A tensor.
    Tensor(AnyTensor<'a>),
    /// A tensor that, if it is a number, is not rounded to halves first: see [`unrounded`].
    Factor(AnyTensor<'a>),
    /// A number that takes part in type promotion, like a Python scalar operand.
    Scalar(Number),
    /// A number that does not take part in type promotion: it is converted to the common dtype.
    Number(Number),
}

impl<'a> From<AnyTensor<'a>> for Argument<'a> {
    fn from(t: AnyTensor<'a>) -> Self {
        Argument::Tensor(t)
    }
}

impl<'a> From<TensorOrScalar<'a>> for Argument<'a> {
    fn from(operand: TensorOrScalar<'a>) -> Self {
        match operand {
            TensorOrScalar::Tensor(t) => Argument::Tensor(t),
            TensorOrScalar::Scalar(s) => Argument::Scalar(s),
        }
    }
}

/// Runs a pointwise operator on tensors and numbers that do not promote. The function determines
/// the dtype of the result. It gets the tensors' elements, then the numbers, all in the common
/// dtype's compute type.
pub fn operator(
    call: &mut Call,
    out: Out,
    function: impl Into<Variant>,
    tensors: &[AnyTensor],
    numbers: &[Number],
) -> Result<()> {
    checked_operator(call, out, function, tensors, numbers, |_| Ok(()))
}

/// [`operator`], with a check of the common dtype before all other checks.
pub fn checked_operator(
    call: &mut Call,
    out: Out,
    function: impl Into<Variant>,
    tensors: &[AnyTensor],
    numbers: &[Number],
    check: impl Fn(DType) -> Result<()>,
) -> Result<()> {
    let variant = function.into();
    ruled_operator(call, out, variant.function.rule, variant, &arguments_of(tensors, numbers), &check)
}

/// Tensors, followed by numbers that do not promote.
#[inline]
pub fn arguments_of<'t>(tensors: &[AnyTensor<'t>], numbers: &[Number]) -> SmallVec<[Argument<'t>; 4]> {
    let mut arguments = SmallVec::new();
    for &t in tensors {
        arguments.push(Argument::Tensor(t));
    }
    for &n in numbers {
        arguments.push(Argument::Number(n));
    }
    arguments
}

/// Runs a pointwise operator on any mix of arguments; the function gets them in order, in the
/// common dtype's compute type. For invalid values of operands that the function guards, the device
/// raises the CPU's error at the next synchronisation or launch.
pub fn operator_of(call: &mut Call, out: Out, function: impl Into<Variant>, arguments: &[Argument]) -> Result<()> {
    let variant = function.into();
    ruled_operator(call, out, variant.function.rule, variant, arguments, &|_| Ok(()))
}

/// [`operator_of`] with a rule for the dtype of the result that differs from the function's, and a
/// check of the common dtype.
pub fn ruled_operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    variant: Variant,
    arguments: &[Argument],
    check: &dyn Fn(DType) -> Result<()>,
) -> Result<()> {
    let mut promoted: SmallVec<[Promoted; 4]> = SmallVec::new();
    for argument in arguments {
        match argument {
            Argument::Tensor(t) | Argument::Factor(t) => promoted.push(Promoted::Tensor(t)),
            Argument::Scalar(n) => promoted.push(Promoted::Scalar(*n)),
            Argument::Number(_) => {}
        }
    }
    let mut common = result_type(&promoted, call.host.default_dtype());
    check(common)?;
    check_promotable(&promoted)?;
    if rule == Rule::Float && !common.is_float() {
        common = call.host.default_dtype();
    }
    let mut inputs = Operands::new();
    // A number for a comparison is rounded first; results are rounded later.
    let compared = |n| if rule == Rule::Bool { rounded(n, common) } else { n };
    for argument in arguments {
        inputs.push(match *argument {
            Argument::Tensor(AnyTensor(t)) | Argument::Factor(AnyTensor(t)) => match operand_of(call, t)? {
                Operand::Number(n) => Operand::Number(compared(n)),
                tensor => tensor,
            },
            Argument::Scalar(n) => Operand::Number(compared(n)),
            Argument::Number(n) => {
                // Floats are computed with wider numbers.
                if common.is_integer() {
                    check_fits(n, common)?;
                }
                Operand::Number(n)
            }
        });
    }
    let result = match rule {
        Rule::Bool => DType::Bool,
        Rule::As(dtype) => dtype,
        Rule::Promote | Rule::Exact | Rule::Float => common,
        Rule::Real => common.real(),
    };
    if rule == Rule::Exact {
        structured::check_same(out, result)?;
    }
    let out = result_of(call, out, result, &inputs)?;
    let factors = arguments.iter().filter_map(|a| if let Argument::Factor(AnyTensor(t)) = a { Some(*t) } else { None });
    let computed = unrounded(common, factors);
    // An `out=` of another dtype gets the result after rounding or wrapping to the result's own
    // dtype.
    let exact = out.dtype == result || result == DType::Bool;
    // A real number in a complex tensor has an imaginary part of 0.
    let both = out.dtype.is_complex().then(|| parts(&out));
    let variant = Variant { rounded: (!exact).then_some(result), ..variant };
    match &both {
        Some([re, im]) => run_operands(call, variant, &[re, im], &inputs, computed)?,
        None => run_operands(call, variant, &[&out], &inputs, computed)?,
    }
    call.ret(out);
    Ok(())
}

/// The tensor for the result of a pointwise operator on `inputs`, by PyTorch's rules for shapes,
/// strides, in-place and `out=` arguments.
pub fn result_tensor(call: &Call, out: Out, dtype: DType, inputs: &[Input]) -> Result<View> {
    let out = result_of(call, out, dtype, &operands(inputs))?;
    if out.dtype.is_complex() && !dtype.is_complex() {
        return Err(Error::Fallback(format!("{}: reals into complex numbers", call.name)));
    }
    Ok(out)
}

/// [`result_tensor`] for operands of any kind. It may be complex for a real result.
pub fn result_of(call: &Call, out: Out, dtype: DType, inputs: &[Operand]) -> Result<View> {
    match out {
        Out::New => {
            let sizes = broadcast_sizes(call, inputs)?;
            Ok(call.empty_strided(dtype, &sizes, &new_strides(&sizes, inputs))?)
        }
        Out::InPlace(t) => checked_result(call, t, dtype, inputs),
        // An input that is also the result keeps its shape, as in place.
        Out::Into(t) if t.handle != 0 && tensors(inputs).any(|input| input.handle == t.handle) => {
            checked_result(call, t, dtype, inputs)
        }
        Out::Into(t) => {
            // Checked as given, before it is resized, and after.
            overlap::check_internal(t)?;
            overlap::check_partial(t, tensors(inputs))?;
            let sizes = broadcast_sizes(call, inputs)?;
            // Checked as given, before it is resized.
            overlap::check_internal(t)?;
            let t = call.given_strided(t, dtype, &sizes, || new_strides(&sizes, inputs))?;
            overlap::check_partial(&t, tensors(inputs))?;
            Ok(t)
        }
    }
}

/// `out`, or a new result with these strides: for operators whose result does not follow its
/// inputs' strides.
pub fn strided<'t>(
    call: &Call,
    out: Out<'t>,
    slot: &'t mut Option<View>,
    dtype: DType,
    (sizes, strides): (&[i64], &[i64]),
) -> Result<Out<'t>> {
    Ok(match out {
        Out::New => Out::Into(slot.insert(call.empty_strided(dtype, sizes, strides)?)),
        given => given,
    })
}

/// `out`, resized first if it has other sizes: for overloads that check only the resized tensor.
pub fn resized<'t>(
    call: &Call,
    out: Out<'t>,
    slot: &'t mut Option<View>,
    (sizes, strides): (&[i64], &[i64]),
) -> Result<Out<'t>> {
    Ok(match out {
        Out::Into(t) if t.sizes.as_slice() != sizes => {
            Out::Into(slot.insert(call.result_strided(Some(t), t.dtype, sizes, || Dims::from_slice(strides))?))
        }
        given => given,
    })
}

/// `t` as the result of a pointwise in-place operator on `inputs`: checks its shape and dtype.
pub fn in_place(call: &Call, t: &View, dtype: DType, inputs: &[Input]) -> Result<View> {
    checked_result(call, t, dtype, &operands(inputs))
}

fn checked_result(call: &Call, t: &View, dtype: DType, inputs: &[Operand]) -> Result<View> {
    let sizes = broadcast_sizes(call, inputs)?;
    structured::check_shape(&t.sizes, &sizes)?;
    check!(
        can_cast(dtype, t.dtype),
        Runtime,
        "result type {dtype} can't be cast to the desired output type {}",
        t.dtype
    );
    overlap::check_internal(t)?;
    overlap::check_partial(t, tensors(inputs))?;
    Ok(t.clone())
}

/// The broadcast shape of the tensors among the inputs.
fn broadcast_sizes(call: &Call, inputs: &[Operand]) -> Result<Dims> {
    let mut all = tensors(inputs);
    let Some(first) = all.next() else { return Ok(Dims::new()) };
    let mut sizes = Dims::from_slice(&first.sizes);
    for t in all {
        if sizes != t.sizes {
            sizes = call.broadcast(&sizes, &t.sizes)?;
        }
    }
    Ok(sizes)
}
