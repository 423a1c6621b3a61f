//! The checks of the operators for single tensors, for the i-th tensors of lists and a number.

use crate::lists::foreach::Operation;
use crate::operator::error::Result;
use crate::pointwise::{arithmetic, power, selection, ternary};
use crate::tensor::promote::Promoted;
use dml_compute::scalar::Scalar as Number;
use dml_kernel::DType;

/// Accepts everything.
pub fn no_check(_: &Operation) -> Result<()> {
    Ok(())
}

/// For a sum with a factor.
pub fn sum(of: &Operation) -> Result<()> {
    of.number.map_or(Ok(()), |alpha| arithmetic::check_alpha(of.common, alpha))
}

/// For a difference from a number.
pub fn difference(of: &Operation) -> Result<()> {
    let flag = matches!(of.number, Some(Number::Bool(_)));
    arithmetic::check_no_bools(flag || of.tensors.iter().any(|t| t.dtype == DType::Bool))
}

/// For a difference with a factor.
pub fn check_difference_with_factor(of: &Operation) -> Result<()> {
    arithmetic::check_no_bools(of.tensors.iter().any(|t| t.dtype == DType::Bool))?;
    sum(of)
}

/// For a limit, which may be a number.
pub fn limit(of: &Operation) -> Result<()> {
    of.number.map_or(Ok(()), |limit| selection::check_limit(limit, of.common))
}

/// For a power, whose exponent may be a number.
pub fn power(of: &Operation) -> Result<()> {
    match of.number {
        Some(exponent) => power::check_exponent(of.tensors[0], exponent),
        None => power::check_not_bool(&[of.tensors[0], of.tensors[1]].map(Promoted::Tensor)),
    }
}

/// For addcmul.
pub fn product(of: &Operation) -> Result<()> {
    ternary::check_product(of.common, of.number)
}

/// For addcdiv.
pub fn quotient(of: &Operation) -> Result<()> {
    ternary::check_quotient(of.tensors[1], of.tensors[2], of.common, of.number)
}

/// For lerp, whose weight may be a tensor.
pub fn lerp(of: &Operation) -> Result<()> {
    match of.tensors {
        [start, end, weight] => ternary::check_lerp_to(start, end, weight, of.common),
        tensors => ternary::check_lerp(tensors[0], tensors[1]),
    }
}
