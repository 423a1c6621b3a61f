//! What the margin losses share: rows of classes and their targets, checked.

use crate::check;
use crate::loss::reduce::Reduce;
use crate::movement::copy::device_copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::rows::Extent;
use crate::reduction::sum::{mean, total};
use crate::tensor::layout::index_type;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{DType, ScalarType};

/// Rows of classes and their targets, contiguous.
pub struct Problem {
    pub input: Tensor,
    pub target: Tensor,
    pub weight: Option<Tensor>,
    pub reduction: Reduce,
    pub rows: i64,
    pub classes: i64,
    /// Shape of the unreduced losses.
    pub sizes: Dims,
}

impl Problem {
    /// The type of indices.
    pub fn index(&self) -> ScalarType {
        index_type(self.input.numel())
    }

    /// The rows of the input.
    pub fn extent(&self) -> Extent {
        Extent { rows: self.rows, n: self.classes, inner: 1 }
    }

    /// What the loss (or gradient) of an element is divided by.
    pub fn divisor(&self) -> f64 {
        let rows = if self.reduction == Reduce::Mean { self.rows.max(1) } else { 1 };
        (rows * self.classes) as f64
    }

    /// Reduces the rows' losses, which are in the accumulator's dtype.
    pub fn finish(&self, call: &Call, losses: &Tensor, out: &Tensor) -> Result<()> {
        match self.reduction {
            Reduce::None => device_copy(call, &losses.as_strided(&out.sizes, &[1][..out.dim()], 0), out),
            Reduce::Mean => mean(call, losses, out),
            Reduce::Sum => total(call, losses, out),
        }
    }

    /// The shape of the loss.
    pub fn result_sizes(&self) -> Dims {
        if self.reduction == Reduce::None { self.sizes.clone() } else { Dims::new() }
    }

    /// Checks that a gradient of the loss is one number, or one a row.
    pub fn check_gradient(&self, grad: &Tensor) -> Result<()> {
        let wanted = if self.reduction == Reduce::None { self.rows } else { 1 };
        check!(
            grad.numel() == wanted,
            Runtime,
            "Expected a gradient of the loss with {wanted} elements, but got {:?}",
            grad.sizes.as_slice()
        );
        Ok(())
    }
}

/// Rows and classes of `[classes]` or `[batch, classes]`, where only the batch may be empty.
pub fn rows_of(input: &Tensor) -> Result<[i64; 2]> {
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
pub fn check_dtypes(name: &str, input: &Tensor, target: &Tensor) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", input.dtype);
    check!(target.dtype == DType::I64, Runtime, "expected scalar type Long but found {}", target.dtype);
    Ok(())
}
