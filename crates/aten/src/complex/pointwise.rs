//! Pointwise operators on complex tensors: the pointwise kernel with the parts of each tensor as
//! separate operands.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::pointwise::operator::{Argument, operand_of, result_of};
use crate::tensor::promote::{Promoted, result_type};
use dml_compute::complex::parts::parts;
use dml_compute::complex::pointwise::{Given, parts_of_number, run};
use dml_compute::pointwise::complex as functions;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{Operand, Operands};
use dml_compute::pointwise::operator::Rule;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// The common dtype of arguments.
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

/// Runs a part of an operator, without adding its result to the call's results.
pub fn run_without_results(call: &mut Call, run: impl FnOnce(&mut Call) -> Result<()>) -> Result<()> {
    let before = call.returns.len();
    run(call)?;
    call.returns.truncate(before);
    Ok(())
}

/// Writes `factor * t`.
pub fn scale(call: &mut Call, t: &View, factor: Number, result: &View) -> Result<()> {
    let arguments = [Argument::Tensor(AnyTensor(t)), Argument::Number(factor)];
    operator(call, Out::InPlace(result), &functions::SCALE, &arguments)
}

/// Runs a pointwise operator on arguments with a complex common dtype; real ones among them are
/// converted first. The function gets them in order.
pub fn operator(call: &mut Call, out: Out, function: &'static Function, arguments: &[Argument]) -> Result<()> {
    ruled_operator(call, out, function.rule, function, arguments)
}

/// [`operator`] with a rule for the dtype of the result that differs from the function's.
pub fn ruled_operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    function: &'static Function,
    arguments: &[Argument],
) -> Result<()> {
    let common = common_dtype(call, arguments);
    if !common.is_complex() {
        return Err(Error::Fallback("complex numbers beside tensors of reals".into()));
    }
    let result = match rule {
        Rule::Promote | Rule::Exact | Rule::Float => common,
        Rule::Real => common.real(),
        Rule::Bool => DType::Bool,
        Rule::As(dtype) => dtype,
    };
    if rule == Rule::Exact {
        structured::check_same(out, result)?;
    }
    let mut whole = Operands::new();
    let mut given: SmallVec<[Given; 4]> = SmallVec::new();
    for argument in arguments {
        let number = |n| {
            let (re, im) = parts_of_number(n);
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
    run(call, function, &out, (common.real(), result), &given)?;
    call.ret(out);
    Ok(())
}
