//! Arithmetic of complex tensors: sums, products, quotients, powers, and what is made of them.

use crate::complex::pointwise::{common_dtype, operator};
use crate::complex::route::Route;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::pointwise::arithmetic::check_no_bools as subtraction_of_bools;
use crate::pointwise::operator::{Argument, resized, strided};
use crate::pointwise::ternary::check_alike;
use dml_compute::complex::functions;
use dml_compute::complex::pointwise::{Rule, parts_of};
use dml_compute::pointwise::function::Function;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Dims, View};

pub fn route(name: &str) -> Option<Route> {
    Some(Route::Run(match name {
        "add" => add,
        "sub" => sub,
        "rsub" => reversed_sub,
        "mul" => mul,
        "div" => div,
        "pow" => pow,
        "addcmul" => addcmul,
        "addcdiv" => addcdiv,
        "lerp" => lerp,
        "addr" => addr,
        "logaddexp" => logaddexp,
        "tanh_backward" => |call, overload| gradient(call, overload, &functions::TANH_BACKWARD),
        "sigmoid_backward" => |call, overload| gradient(call, overload, &functions::SIGMOID_BACKWARD),
        _ => return None,
    }))
}

/// The two operands, tensors or numbers.
fn operands<'a>(call: &Call<'a>, overload: &Operator, second: &str) -> Result<[Argument<'a>; 2]> {
    let x: TensorOrScalar = overload.argument(call, "self")?;
    let y: TensorOrScalar = overload.argument(call, second)?;
    Ok([x.into(), y.into()])
}

/// The factor `alpha`, or `None` where it is 1.
fn factor(call: &Call, overload: &Operator, name: &str) -> Result<Option<Scalar>> {
    let alpha: Scalar = overload.argument_or(call, name, Scalar::Int(1))?;
    Ok((parts_of(alpha) != (1.0, 0.0)).then_some(alpha))
}

/// Checks that no operand of a difference is of bools.
fn check_no_bools(operands: &[Argument; 2]) -> Result<()> {
    let bools = |argument: &Argument| match argument {
        Argument::Tensor(t) | Argument::Factor(t) => t.dtype == dml_kernel::DType::Bool,
        Argument::Scalar(n) | Argument::Number(n) => matches!(n, Scalar::Bool(_)),
    };
    subtraction_of_bools(operands.iter().any(bools))
}

fn add(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    match factor(call, overload, "alpha")? {
        None => operator(call, out, Rule::Complex, &functions::ADD, &[x, y]),
        Some(alpha) => {
            let arguments = [x, y, Argument::Number(alpha)];
            operator(call, out, Rule::Complex, &functions::ADD_ALPHA, &arguments)
        }
    }
}

fn sub(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = operands(call, overload, "other")?;
    check_no_bools(&operands)?;
    let out = overload.out(call)?;
    difference(call, overload, out, operands, Rule::Complex)
}

/// `other - alpha * self`
fn reversed_sub(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "other")?;
    check_no_bools(&[x, y])?;
    let sizes = match (x, y) {
        (Argument::Tensor(x), Argument::Tensor(y)) => call.broadcast(&y.sizes, &x.sizes)?,
        (Argument::Tensor(t), _) | (_, Argument::Tensor(t)) => t.sizes.clone(),
        _ => Dims::new(),
    };
    // The CPU computes it elsewhere, and copies into a contiguous result where it has to be
    // resized.
    let (out, mut given) = (overload.out(call)?, None);
    let out = resized(call, out, &mut given, (&sizes, &View::contiguous_strides(&sizes)))?;
    difference(call, overload, out, [y, x], Rule::Exact)
}

fn difference(call: &mut Call, overload: &Operator, out: Out, [x, y]: [Argument; 2], rule: Rule) -> Result<()> {
    match factor(call, overload, "alpha")? {
        None => operator(call, out, rule, &functions::SUB, &[x, y]),
        Some(alpha) => {
            let arguments = [x, y, Argument::Number(alpha)];
            operator(call, out, rule, &functions::SUB_ALPHA, &arguments)
        }
    }
}

fn mul(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Complex, &functions::MUL, &operands)
}

/// Division without rounding; complex numbers have no other.
fn div(call: &mut Call, overload: &Operator) -> Result<()> {
    let rounding: Option<&str> = overload.argument_or(call, "rounding_mode", None)?;
    if rounding.is_some() {
        return Err(Error::Fallback("rounded quotients of complex numbers".into()));
    }
    let operands = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Complex, &functions::DIV, &operands)
}

/// The common exponents that are numbers are products, roots and reciprocals, as on the CPU.
fn pow(call: &mut Call, overload: &Operator) -> Result<()> {
    let [x, y] = operands(call, overload, "exponent")?;
    let out = overload.out(call)?;
    if let (Argument::Scalar(_), Argument::Tensor(exponent)) = (x, y) {
        return of_number(call, x, exponent, out);
    }
    let function = match y {
        Argument::Scalar(exponent) => to_exponent(exponent),
        _ => &functions::POW,
    };
    operator(call, out, Rule::Complex, function, &[x, y])
}

/// The function of an exponent that is a number.
fn to_exponent(exponent: Scalar) -> &'static Function {
    let (exponent, 0.0) = parts_of(exponent) else { return &functions::POW };
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

/// Of a number to a tensor: the result is contiguous whatever the strides of the exponent, and all
/// powers of 1 are 1.
fn of_number(call: &mut Call, base: Argument, exponent: AnyTensor, out: Out) -> Result<()> {
    let arguments = [base, Argument::Tensor(exponent)];
    let shape = (exponent.sizes.as_slice(), &View::contiguous_strides(&exponent.sizes)[..]);
    let (mut new, mut given, dtype) = (None, None, common_dtype(call, &arguments));
    let out = resized(call, out, &mut given, shape)?;
    let out = strided(call, out, &mut new, dtype, shape)?;
    if matches!(base, Argument::Scalar(n) if parts_of(n) == (1.0, 0.0)) {
        return operator(call, out, Rule::Complex, &functions::POW_OF_1, &arguments);
    }
    operator(call, out, Rule::Complex, &functions::POW, &arguments)
}

/// `self`, two tensors, and the factor `value`.
fn with_two<'a>(call: &Call<'a>, overload: &Operator) -> Result<[Argument<'a>; 4]> {
    let tensors: [AnyTensor; 3] =
        [overload.argument(call, "self")?, overload.argument(call, "tensor1")?, overload.argument(call, "tensor2")?];
    let value: Scalar = overload.argument(call, "value")?;
    let [a, b, c] = tensors.map(Argument::Tensor);
    Ok([a, b, c, Argument::Number(value)])
}

/// `self + value * tensor1 * tensor2`
fn addcmul(call: &mut Call, overload: &Operator) -> Result<()> {
    let (arguments, out) = (with_two(call, overload)?, overload.out(call)?);
    operator(call, out, Rule::Complex, &functions::ADDCMUL, &arguments)
}

/// `self + value * tensor1 / tensor2`
fn addcdiv(call: &mut Call, overload: &Operator) -> Result<()> {
    let (arguments, out) = (with_two(call, overload)?, overload.out(call)?);
    operator(call, out, Rule::Complex, &functions::ADDCDIV, &arguments)
}

/// `self + weight * (end - self)`, from the nearer end.
fn lerp(call: &mut Call, overload: &Operator) -> Result<()> {
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
    operator(call, out, Rule::Exact, &functions::LERP, &[x.into(), end.into(), weight])
}

/// `beta * self + alpha * vec1 vec2^T`; self is not read where beta is 0.
fn addr(call: &mut Call, overload: &Operator) -> Result<()> {
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
    if parts_of(beta) == (0.0, 0.0) {
        return operator(call, out, Rule::Complex, &functions::ADDR_0, &arguments);
    }
    operator(call, out, Rule::Complex, &functions::ADDR, &arguments)
}

/// `log(e^self + e^other)`
fn logaddexp(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = operands(call, overload, "other")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Complex, &functions::LOGADDEXP, &operands)
}

/// The gradient times the conjugate of a function's derivative, which is given by the function's
/// value.
fn gradient(call: &mut Call, overload: &Operator, function: &'static Function) -> Result<()> {
    let grad: AnyTensor = overload.argument(call, "grad_output")?;
    let output: AnyTensor = overload.argument(call, "output")?;
    let out = overload.out(call)?;
    operator(call, out, Rule::Complex, function, &[grad.into(), output.into()])
}
