//! Argument checks that the margin losses share: rows of classes and their targets.

use crate::check;
use crate::operator::error::Result;
use dml_compute::loss::margin::problem::Problem;
use dml_compute::loss::reduce::Reduce;
use dml_compute::view::View;
use dml_kernel::DType;

/// Checks that a gradient of the loss is a single number, or one number for each row.
pub fn check_gradient(problem: &Problem, grad: &View) -> Result<()> {
    let wanted = if problem.reduction == Reduce::None { problem.rows } else { 1 };
    check!(
        grad.numel() == wanted,
        Runtime,
        "Expected a gradient of the loss with {wanted} elements, but got {:?}",
        grad.sizes.as_slice()
    );
    Ok(())
}

/// Rows and classes of `[classes]` or `[batch, classes]`; only the batch may be empty.
pub fn rows_of(input: &View) -> Result<[i64; 2]> {
    let shape = match *input.sizes {
        [] => Some([1, 1]),
        [classes] => Some([1, classes]),
        [batch, classes] => Some([batch, classes]),
        _ => None,
    };
    match shape {
        Some([rows, classes]) if classes > 0 => Ok([rows, classes]),
        _ => {
            check!(
                false,
                Runtime,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {:?}",
                input.sizes.as_slice()
            );
            Ok([0, 0])
        }
    }
}

/// Checks the dtypes of scores and targets.
pub fn check_dtypes(name: &str, input: &View, target: &View) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", input.dtype);
    check!(target.dtype == DType::I64, Runtime, "expected scalar type Long but found {}", target.dtype);
    Ok(())
}
