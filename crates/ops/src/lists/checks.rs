//! What operators refuse of single tensors, they refuse of lists.

use crate::check;
use crate::operator::call::Scalar as Number;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::Result;
use crate::pointwise::arithmetic::{check_alpha, check_no_bools};
use crate::pointwise::selection::check_limit;
use crate::pointwise::ternary::{check_lerp, check_quotient};
use crate::pointwise::unary::check_negation;
use crate::tensor::Tensor;
use dml_kernel::DType;

/// Checks the i-th tensors of all lists, and the number that they meet, which meet in `common`.
pub fn check_row(family: &str, row: &[&Tensor], number: Option<Number>, common: DType) -> Result<()> {
    let known = |takes: bool| {
        check!(takes, NotImplemented, "\"{family}\" not implemented for '{common}'");
        Ok(())
    };
    match family {
        "abs" | "floor" | "ceil" | "trunc" | "round" | "addcmul" => known(common != DType::Bool),
        "frac" => known(common.is_float()),
        "neg" => check_negation(row[0]),
        "add_alpha" | "foreach_add_tensor" => number.map_or(Ok(()), |alpha| check_alpha(common, alpha)),
        "sub" | "sub_alpha" => {
            let flag = family == "sub" && matches!(number, Some(Number::Bool(_)));
            check_no_bools(flag || row.iter().any(|t| t.dtype == DType::Bool))?;
            match number {
                Some(alpha) if family == "sub_alpha" => check_alpha(common, alpha),
                _ => Ok(()),
            }
        }
        "maximum" | "minimum" => number.map_or(Ok(()), |limit| check_limit(limit, common)),
        "pow" => {
            known(common != DType::Bool)?;
            check_all_fit(number.as_slice(), common)
        }
        "addcdiv" => check_quotient(row[1], row[2]),
        "lerp" => check_lerp(row[0], row[1], row.get(2).copied()),
        _ => Ok(()),
    }
}
