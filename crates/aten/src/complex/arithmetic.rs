//! Arithmetic of complex tensors: sums, products, quotients, powers, and combinations of them.

use crate::complex::pointwise::{common_dtype, operator, ruled_operator};
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::pointwise::arithmetic::check_no_bools as subtraction_of_bools;
use crate::pointwise::operator::{Argument, resized, strided};
use crate::pointwise::ternary::check_alike;
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::pointwise::complex as functions;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::operator::Rule;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Dims, View};

/// The two operands, tensors or numbers.
fn operands<'a>(call: &Call<'a>, overload: &Operator, second: &str) -> Result<[Argument<'a>; 2]> {
    let x: TensorOrScalar = overload.argument(call, "self")?;
    let y: TensorOrScalar = overload.argument(call, second)?;
    Ok([x.into(), y.into()])
}

/// The factor `alpha`, or `None` if it is 1.
fn factor(call: &Call, overload: &Operator, name: &str) -> Result<Option<Scalar>> {
    let alpha: Scalar = overload.argument_or(call, name, Scalar::Int(1))?;
    Ok((parts_of_number(alpha) != (1.0, 0.0)).then_some(alpha))
}

/// Checks that no operand of a difference is a bool tensor.
fn check_no_bools(operands: &[Argument; 2]) -> Result<()> {
    let bools = |argument: &Argument| match argument {
        Argument::Tensor(t) | Argument::Factor(t) => t.dtype == dml_kernel::DType::Bool,
        Argument::Scalar(n) | Argument::Number(n) => matches!(n, Scalar::Bool(_)),
    };
    subtraction_of_bools(operands.iter().any(bools))
}

/// `self + alpha * other`
pub fn add(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    match factor(call, overload, "alpha")? {
        None => operator(call, out, &functions::ADD, &[x, y]),
        Some(alpha) => {
            let arguments = [x, y, Argument::Number(alpha)];
            operator(call, out, &functions::ADD_ALPHA, &arguments)
        }
    }
}

/// `self - alpha * other`
pub fn sub(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = operands(call, overload, "other")?;
    check_no_bools(&operands)?;
    let out = overload.out(call)?;
    difference(call, overload, out, operands, Rule::Promote)
}

/// `other - alpha * self`
pub fn reversed_sub(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "other")?;
    check_no_bools(&[x, y])?;
    let sizes = match (x, y) {
        (Argument::Tensor(x), Argument::Tensor(y)) => call.broadcast(&y.sizes, &x.sizes)?,
        (Argument::Tensor(t), _) | (_, Argument::Tensor(t)) => t.sizes.clone(),
        _ => Dims::new(),
    };
    // The CPU computes the difference in another tensor, and copies it to a contiguous result if
    // the result has to be resized.
    let (out, mut given) = (overload.out(call)?, None);
    let out = resized(call, out, &mut given, (&sizes, &View::contiguous_strides(&sizes)))?;
    difference(call, overload, out, [y, x], Rule::Exact)
}

fn difference(call: &mut Call, overload: &Operator, out: Out, [x, y]: [Argument; 2], rule: Rule) -> Result<()> {
    match factor(call, overload, "alpha")? {
        None => ruled_operator(call, out, rule, &functions::SUB, &[x, y]),
        Some(alpha) => {
            let arguments = [x, y, Argument::Number(alpha)];
            ruled_operator(call, out, rule, &functions::SUB_ALPHA, &arguments)
        }
    }
}

/// Division without rounding modes, which complex numbers do not have.
pub fn div(call: &mut Call, overload: &Operator) -> Result<()> {
    let rounding: Option<&str> = overload.argument_or(call, "rounding_mode", None)?;
    if rounding.is_some() {
        return Err(Error::Fallback("rounded quotients of complex numbers".into()));
    }
    let operands = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    operator(call, out, &functions::DIV, &operands)
}

/// Common scalar exponents are computed as products, roots and reciprocals, as on the CPU.
pub fn pow(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "exponent")?;
    let out = overload.out(call)?;
    if let (Argument::Scalar(_), Argument::Tensor(exponent)) = (x, y) {
        return of_number(call, x, exponent, out);
    }
    let function = match y {
        Argument::Scalar(exponent) => to_exponent(exponent),
        _ => &functions::POW,
    };
    operator(call, out, function, &[x, y])
}

/// The function for a scalar exponent.
fn to_exponent(exponent: Scalar) -> &'static Function {
    let (exponent, 0.0) = parts_of_number(exponent) else { return &functions::POW };
    match exponent {
        0.0 => &functions::POW_0,
        1.0 => &functions::POW_1,
        2.0 => &functions::POW_2,
        3.0 => &functions::POW_3,
        0.5 => &functions::POW_HALF,
        -0.5 => &functions::POW_MINUS_HALF,
        -1.0 => &functions::POW_MINUS_1,
        -2.0 => &functions::POW_MINUS_2,
        _ => &functions::POW,
    }
}

/// A scalar to the power of a tensor: the result is contiguous whatever the strides of the
/// exponent, and all powers of 1 are 1.
fn of_number(call: &mut Call, base: Argument, exponent: AnyTensor, out: Out) -> Result<()> {
    let arguments = [base, Argument::Tensor(exponent)];
    let shape = (exponent.sizes.as_slice(), &View::contiguous_strides(&exponent.sizes)[..]);
    let (mut new, mut given, dtype) = (None, None, common_dtype(call, &arguments));
    let out = resized(call, out, &mut given, shape)?;
    let out = strided(call, out, &mut new, dtype, shape)?;
    if matches!(base, Argument::Scalar(n) if parts_of_number(n) == (1.0, 0.0)) {
        return operator(call, out, &functions::POW_OF_1, &arguments);
    }
    operator(call, out, &functions::POW, &arguments)
}

/// The arguments `self`, two tensors, and the factor `value`.
fn with_two<'a>(call: &Call<'a>, overload: &Operator) -> Result<[Argument<'a>; 4]> {
    let tensors: [AnyTensor; 3] =
        [overload.argument(call, "self")?, overload.argument(call, "tensor1")?, overload.argument(call, "tensor2")?];
    let value: Scalar = overload.argument(call, "value")?;
    let [a, b, c] = tensors.map(Argument::Tensor);
    Ok([a, b, c, Argument::Number(value)])
}

/// `self + value * tensor1 * tensor2`
pub fn addcmul(call: &mut Call, overload: &Operator) -> Result<()> {
    let (arguments, out) = (with_two(call, overload)?, overload.out(call)?);
    operator(call, out, &functions::ADDCMUL, &arguments)
}

/// `self + value * tensor1 / tensor2`
pub fn addcdiv(call: &mut Call, overload: &Operator) -> Result<()> {
    let (arguments, out) = (with_two(call, overload)?, overload.out(call)?);
    operator(call, out, &functions::ADDCDIV, &arguments)
}

/// `self + weight * (end - self)`, computed from the nearer end.
pub fn lerp(call: &mut Call, overload: &Operator) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let end: AnyTensor = overload.argument(call, "end")?;
    let weight = match overload.argument(call, "weight")? {
        TensorOrScalar::Tensor(t) => Argument::Tensor(t),
        TensorOrScalar::Scalar(n) => Argument::Number(n),
    };
    check_alike("end", &end, &x)?;
    if let Argument::Tensor(weight) = &weight
        && weight.dim() > 0
    {
        check_alike("weight", weight, &x)?;
    }
    let out = overload.out(call)?;
    operator(call, out, &functions::LERP, &[x.into(), end.into(), weight])
}

/// `beta * self + alpha * vec1 vec2^T`; self is not read if beta is 0.
pub fn addr(call: &mut Call, overload: &Operator) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let vectors: [AnyTensor; 2] = [overload.argument(call, "vec1")?, overload.argument(call, "vec2")?];
    let [beta, alpha]: [Scalar; 2] = [overload.argument(call, "beta")?, overload.argument(call, "alpha")?];
    let [a, b] = vectors.map(|AnyTensor(t)| t);
    if a.dim() != 1 || b.dim() != 1 || x.dim() > 2 {
        return Err(Error::Fallback("addr of other than vectors".into()));
    }
    let column = a.as_strided(&[a.sizes[0], 1], &[a.strides[0], 0], 0);
    let row = b.as_strided(&[1, b.sizes[0]], &[0, b.strides[0]], 0);
    let arguments = [
        x.into(),
        Argument::Tensor(AnyTensor(&column)),
        Argument::Tensor(AnyTensor(&row)),
        Argument::Number(beta),
        Argument::Number(alpha),
    ];
    let out = overload.out(call)?;
    if parts_of_number(beta) == (0.0, 0.0) {
        return operator(call, out, &functions::ADDR_0, &arguments);
    }
    operator(call, out, &functions::ADDR, &arguments)
}
