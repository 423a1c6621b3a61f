//! Pointwise operators of complex tensors: the pointwise kernel, with the real and imaginary parts
//! of each tensor as separate operands.

use crate::complex::parts::parts;
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::function::{Function, Variant};
use crate::pointwise::kernel::{Operand, Operands, run_operands};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// An operand, by its parts.
pub enum Given {
    /// The real and the imaginary parts of a tensor.
    Complex([View; 2]),
    /// A tensor of real numbers.
    Real(View),
    /// The parts of one number for all elements.
    Number(f64, f64),
}

/// The real and imaginary parts of a number.
pub fn parts_of_number(n: Number) -> (f64, f64) {
    if let Number::Complex(re, im) = n { (re, im) } else { (n.to_f64(), 0.0) }
}

/// Enqueues a function of complex numbers. Operands broadcast to `out`, and are computed with in
/// `component`, the dtype of their parts. The function's result has dtype `result`, and is then
/// converted to the dtype of `out`.
pub fn run(
    cx: &Context,
    function: &'static Function,
    out: &View,
    (component, result): (DType, DType),
    given: &[Given],
) -> Result<()> {
    let mut operands = Operands::new();
    let mut pairs = [false; 8];
    for (operand, pair) in given.iter().zip(&mut pairs) {
        *pair = !matches!(operand, Given::Real(_));
        match operand {
            Given::Complex([re, im]) => operands.extend([Operand::Tensor(re), Operand::Tensor(im)]),
            Given::Real(t) => operands.push(Operand::Tensor(t)),
            Given::Number(re, im) => {
                operands.extend([re, im].map(|&x| Operand::Number(Number::Double(x))));
            }
        }
    }
    let halves = if out.dtype.is_complex() { parts(out).to_vec() } else { vec![out.clone()] };
    let outs: SmallVec<[&View; 2]> = halves.iter().collect();
    let exact = out.dtype == result || result == DType::Bool;
    let variant = Variant { rounded: (!exact).then_some(result.real()), ..function.with(pairs) };
    run_operands(cx, variant, &outs, &operands, component)
}
