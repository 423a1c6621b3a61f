//! The ways in which an operator of complex tensors is done with reals.

use crate::complex::pointwise::Rule;
use dml_kernel::math::complex;

/// A function of the kernel's mathematics.
#[derive(Copy, Clone)]
pub struct Unary {
    /// The kernel's name.
    pub family: &'static str,
    /// The dtype of the result.
    pub rule: Rule,
    /// What is computed.
    pub body: complex::Unary,
}
