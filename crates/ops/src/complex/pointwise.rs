//! Pointwise operators of complex tensors: the pointwise kernel with the parts of each tensor as operands of their own.

use super::parts::parts;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::pointwise::kernel::{Operand, Operands, Options, Variant, run_variant};
use crate::pointwise::operator::{Argument, operand_of, result_of};
use crate::tensor::Tensor;
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{Builder, DType, Value, convert};
use smallvec::SmallVec;

/// The dtype of the result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The complex dtype in which the operands meet.
    Complex,
    /// The same, and `out=` casts nothing.
    Exact,
    /// That of its parts.
    Real,
    /// Bool.
    Bool,
}

/// What a body computes of one element: the parts of a complex number, or one value.
pub type Body<'f> = &'f dyn for<'b> Fn(&'b Builder, &[Complex<'b>]) -> Vec<Value<'b>>;

/// An operand by its parts.
enum Given {
    Complex([Tensor; 2]),
    Real(Tensor),
    Number(f64, f64),
}

/// The dtype in which arguments meet.
pub fn common_dtype(call: &Call, arguments: &[Argument]) -> DType {
    let promoted: SmallVec<[Promoted; 4]> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Argument::Tensor(t) | Argument::Factor(t) => Some(Promoted::Tensor(t)),
            Argument::Scalar(n) => Some(Promoted::Scalar(*n)),
            Argument::Number(_) => None,
        })
        .collect();
    result_type(&promoted, call.host.default_dtype())
}

/// The parts of a number.
pub fn parts_of(n: Number) -> (f64, f64) {
    if let Number::Complex(re, im) = n { (re, im) } else { (n.to_f64(), 0.0) }
}

/// Runs a part of an operator whose result is none of the call's.
pub fn quietly(call: &mut Call, run: impl FnOnce(&mut Call) -> Result<()>) -> Result<()> {
    let before = call.returns.len();
    run(call)?;
    call.returns.truncate(before);
    Ok(())
}

/// Writes `factor * t`.
pub fn scale(call: &mut Call, t: &Tensor, factor: Number, result: &Tensor) -> Result<()> {
    let arguments = [Argument::Tensor(AnyTensor(t)), Argument::Number(factor)];
    operator(call, Out::InPlace(result), Rule::Exact, "complex_scale", &arguments, &|_, z| {
        complex::mul(z[1], z[0]).parts()
    })
}

/// Runs a pointwise operator of arguments that meet in a complex dtype; real ones among them become complex first. `body` gets them in
/// order.
pub fn operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    arguments: &[Argument],
    body: Body<'_>,
) -> Result<()> {
    let common = common_dtype(call, arguments);
    if !common.is_complex() {
        return Err(Error::Fallback("complex numbers beside tensors of reals".into()));
    }
    let result = match rule {
        Rule::Complex | Rule::Exact => common,
        Rule::Real => common.real(),
        Rule::Bool => DType::Bool,
    };
    if rule == Rule::Exact {
        structured::check_same(out, result)?;
    }
    let mut whole = Operands::new();
    let mut given: SmallVec<[Given; 4]> = SmallVec::new();
    for argument in arguments {
        let number = |n| {
            let (re, im) = parts_of(n);
            Given::Number(re, im)
        };
        given.push(match *argument {
            Argument::Tensor(AnyTensor(t)) | Argument::Factor(AnyTensor(t)) => match operand_of(call, t)? {
                Operand::Number(n) => number(n),
                Operand::Tensor(t) => {
                    whole.push(Operand::Tensor(t));
                    if t.dtype.is_complex() { Given::Complex(parts(t)) } else { Given::Real(t.clone()) }
                }
            },
            Argument::Scalar(n) | Argument::Number(n) => number(n),
        });
    }
    let out = result_of(call, out, result, &whole)?;
    run(call, family, &out, (common.real(), result), &given, body)?;
    call.ret(out);
    Ok(())
}

fn run(
    call: &Call,
    family: &'static str,
    out: &Tensor,
    (component, result): (DType, DType),
    given: &[Given],
    body: Body<'_>,
) -> Result<()> {
    let mut operands = Operands::new();
    let mut pairs = Options::default();
    for (i, operand) in given.iter().enumerate() {
        match operand {
            Given::Complex([re, im]) => {
                pairs[i] = true;
                operands.extend([Operand::Tensor(re), Operand::Tensor(im)]);
            }
            Given::Real(t) => operands.push(Operand::Tensor(t)),
            Given::Number(re, im) => {
                operands.extend([re, im].map(|&x| Operand::Number(Number::Double(x))));
            }
        }
    }
    let kinds: SmallVec<[bool; 4]> = given.iter().map(|g| !matches!(g, Given::Real(_))).collect();
    let halves = if out.dtype.is_complex() { parts(out).to_vec() } else { vec![out.clone()] };
    let outs: SmallVec<[&Tensor; 2]> = halves.iter().collect();
    let exact = out.dtype == result || result == DType::Bool;
    run_variant(call, family, Variant::Options(pairs), &outs, &operands, component, &|b, v| {
        let mut values = v.iter().copied();
        let mut next = || values.next().expect("an operand for each part");
        let numbers: Vec<Complex> =
            kinds.iter().map(|&pair| if pair { Complex::new(next(), next()) } else { Complex::real(next()) }).collect();
        let mut results = body(b, &numbers);
        if !exact {
            results.iter_mut().for_each(|x| *x = convert(*x, result.real()));
        }
        // A real result in a complex tensor.
        if results.len() < outs.len() {
            results.push(results[0].like(0.0));
        }
        results
    })
}
