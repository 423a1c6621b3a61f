//! What the margin losses share: rows of classes and their targets, checked.

use crate::context::Context;
use crate::error::Result;
use crate::loss::reduce::Reduce;
use crate::movement::copy::device_copy;
use crate::primitives::rows::Extent;
use crate::reduction::sum::{mean, total};
use crate::view::layout::index_type;
use crate::view::{Dims, View};
use dml_kernel::ScalarType;

/// Rows of classes and their targets, contiguous.
pub struct Problem {
    pub input: View,
    pub target: View,
    pub weight: Option<View>,
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
    pub fn finish(&self, cx: &Context, losses: &View, out: &View) -> Result<()> {
        match self.reduction {
            Reduce::None => device_copy(cx, &losses.as_strided(&out.sizes, &[1][..out.dim()], 0), out),
            Reduce::Mean => mean(cx, losses, out),
            Reduce::Sum => total(cx, losses, out),
        }
    }

    /// The shape of the loss.
    pub fn result_sizes(&self) -> Dims {
        if self.reduction == Reduce::None { self.sizes.clone() } else { Dims::new() }
    }
}
