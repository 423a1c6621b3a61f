//! Operators on the pointwise kernel: arguments to operands, type promotion, and the result's
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

/// Checks that a tensor is of floats, for operators that do not promote integers.
pub fn check_float(t: &View, name: &str) -> Result<()> {
    let dtype = t.dtype;
    check!(dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// [`operator`] of tensors that meet in a float dtype, as an activation and its gradient; others
/// are refused. That of a single tensor casts nothing to `out=`, as on CPU.
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
    checked_operator(call, out, rule, function, tensors, numbers, check)
}

/// The dtype in which tensors meet.
pub fn common_dtype(call: &Call, tensors: &[AnyTensor]) -> DType {
    let promoted: SmallVec<[Promoted; 4]> = tensors.iter().map(|t| Promoted::Tensor(t)).collect();
    result_type(&promoted, call.host.default_dtype())
}

/// Checks that the tensor arguments do not meet in a 16-bit float, for operators that CPU has for
/// wider ones only.
pub fn check_not_half(call: &Call, tensors: &[AnyTensor], name: &str) -> Result<()> {
    let dtype = common_dtype(call, tensors);
    let name = name.strip_prefix("special_").unwrap_or(name);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    check!(!half, NotImplemented, "\"{name}_cpu\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that a tensor is not of bools.
pub fn check_not_bool(t: &View, name: &str) -> Result<()> {
    let dtype = t.dtype;
    check!(dtype != DType::Bool, NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that a tensor is of integers or bools.
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
    /// A number that takes part in type promotion, as a Python scalar operand does.
    Scalar(Number),
    /// A number that does not: it is converted to the common dtype.
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

/// Runs a pointwise operator of tensors with numbers that do not promote. The function gets the
/// tensors' elements, then the numbers, all in the common dtype's compute type.
pub fn operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    function: impl Into<Variant>,
    tensors: &[AnyTensor],
    numbers: &[Number],
) -> Result<()> {
    checked_operator(call, out, rule, function, tensors, numbers, |_| Ok(()))
}

/// [`operator`], with a check of the dtype in which the tensors meet before all others.
#[allow(clippy::too_many_arguments)]
pub fn checked_operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    function: impl Into<Variant>,
    tensors: &[AnyTensor],
    numbers: &[Number],
    check: impl Fn(DType) -> Result<()>,
) -> Result<()> {
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    for &t in tensors {
        arguments.push(Argument::Tensor(t));
    }
    for &n in numbers {
        arguments.push(Argument::Number(n));
    }
    operator_with(call, out, rule, function.into(), &arguments, &check)
}

/// Runs a pointwise operator of any mix of arguments; the function gets them in order, in the
/// common dtype's compute type. Operands that it guards must have certain values: of others, the
/// device raises CPU's error at the next synchronisation or launch.
pub fn operator_of(
    call: &mut Call,
    out: Out,
    rule: Rule,
    function: impl Into<Variant>,
    arguments: &[Argument],
) -> Result<()> {
    operator_with(call, out, rule, function.into(), arguments, &|_| Ok(()))
}

/// [`operator_of`], with a check of the dtype in which the arguments meet.
fn operator_with(
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
    // A number that is compared is rounded first; results are rounded later.
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
    };
    if rule == Rule::Exact {
        structured::check_same(out, result)?;
    }
    let out = result_of(call, out, result, &inputs)?;
    let factors = arguments.iter().filter_map(|a| if let Argument::Factor(AnyTensor(t)) = a { Some(*t) } else { None });
    let computed = unrounded(common, factors);
    // What `out=` of another dtype takes is the result, wrapped or rounded to its own.
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

/// The tensor that holds the result of a pointwise operator on `inputs`, by PyTorch's rules for
/// shapes, strides, in-place and `out=` arguments.
pub fn result_tensor(call: &Call, out: Out, dtype: DType, inputs: &[Input]) -> Result<View> {
    let out = result_of(call, out, dtype, &operands(inputs))?;
    if out.dtype.is_complex() && !dtype.is_complex() {
        return Err(Error::Fallback(format!("{}: reals into complex numbers", call.name)));
    }
    Ok(out)
}

/// [`result_tensor`] of operands that are only looked at. It may be complex where the result is of
/// reals.
pub fn result_of(call: &Call, out: Out, dtype: DType, inputs: &[Operand]) -> Result<View> {
    match out {
        Out::New => {
            let sizes = broadcast_sizes(call, inputs)?;
            Ok(call.empty_strided(dtype, &sizes, &new_strides(&sizes, inputs))?)
        }
        Out::InPlace(t) => written(call, t, dtype, inputs),
        // An input that is also the result keeps its shape, as in place.
        Out::Into(t) if t.handle != 0 && tensors(inputs).any(|input| input.handle == t.handle) => {
            written(call, t, dtype, inputs)
        }
        Out::Into(t) => {
            // As it is given, before it is resized, and after.
            overlap::check_internal(t)?;
            overlap::check_partial(t, tensors(inputs))?;
            let sizes = broadcast_sizes(call, inputs)?;
            // As it is given, before it is resized.
            overlap::check_internal(t)?;
            let t = call.given_strided(t, dtype, &sizes, || new_strides(&sizes, inputs))?;
            overlap::check_partial(&t, tensors(inputs))?;
            Ok(t)
        }
    }
}

/// `out`, but for a new result one of these strides: of operators whose result does not lie as
/// their inputs do.
pub fn strided<'t>(
    call: &Call,
    out: Out<'t>,
    place: &'t mut Option<View>,
    dtype: DType,
    (sizes, strides): (&[i64], &[i64]),
) -> Result<Out<'t>> {
    Ok(match out {
        Out::New => Out::Into(place.insert(call.empty_strided(dtype, sizes, strides)?)),
        given => given,
    })
}

/// `out`, resized to these sizes first if it has others: of overloads that judge the resized tensor
/// alone.
pub fn resized<'t>(
    call: &Call,
    out: Out<'t>,
    place: &'t mut Option<View>,
    (sizes, strides): (&[i64], &[i64]),
) -> Result<Out<'t>> {
    Ok(match out {
        Out::Into(t) if t.sizes.as_slice() != sizes => {
            Out::Into(place.insert(call.result_strided(Some(t), t.dtype, sizes, || Dims::from_slice(strides))?))
        }
        given => given,
    })
}

/// `t` as the place of the result of a pointwise operator on `inputs`: its shape and dtype must
/// take the result.
pub fn in_place(call: &Call, t: &View, dtype: DType, inputs: &[Input]) -> Result<View> {
    written(call, t, dtype, &operands(inputs))
}

fn written(call: &Call, t: &View, dtype: DType, inputs: &[Operand]) -> Result<View> {
    let sizes = broadcast_sizes(call, inputs)?;
    check!(
        t.sizes == sizes,
        Runtime,
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        t.sizes.as_slice(),
        sizes.as_slice()
    );
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

/// The common shape of the tensors among the inputs.
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
