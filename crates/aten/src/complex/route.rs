//! The ways in which an operator of complex tensors is done with reals.

use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::complex::pointwise::Rule;
use dml_compute::pointwise::function::Function;

/// How an operator of complex tensors is done with reals.
#[derive(Copy, Clone)]
pub enum Route {
    /// It moves elements: the operator of reals runs on their bits.
    Moves,
    /// It is linear with real coefficients: the operator of reals runs on the real parts and on the
    /// imaginary ones.
    ByParts,
    /// A pointwise function of one tensor, and the dtype of its result.
    Unary(Rule, &'static Function),
    /// A function of its own.
    Run(fn(&mut Call, &Operator) -> Result<()>),
}
