//! Pointwise operators of complex tensors: the pointwise kernel with the parts of each tensor as operands of their own.

use crate::complex::parts::parts;
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{Operand, Operands, Options, Variant, run_variant};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::math::complex::Complex;
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
pub enum Given {
    Complex([View; 2]),
    Real(View),
    Number(f64, f64),
}

/// The parts of a number.
pub fn parts_of(n: Number) -> (f64, f64) {
    if let Number::Complex(re, im) = n { (re, im) } else { (n.to_f64(), 0.0) }
}

pub fn run(
    cx: &Context,
    family: &'static str,
    out: &View,
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
    let outs: SmallVec<[&View; 2]> = halves.iter().collect();
    let exact = out.dtype == result || result == DType::Bool;
    run_variant(cx, family, Variant::Options(pairs), &outs, &operands, component, &|b, v| {
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
