//! Shared by the margin losses: rows of classes and their targets.

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
    /// Scores, `[rows, classes]`.
    pub input: View,
    /// Classes, int64: one per row, or a list of `classes` per row.
    pub target: View,
    /// A weight for each class, in the input's dtype.
    pub weight: Option<View>,
    /// The reduction of the losses.
    pub reduction: Reduce,
    /// Number of rows.
    pub rows: i64,
    /// Number of classes.
    pub classes: i64,
    /// Shape of the unreduced losses.
    pub sizes: Dims,
}

impl Problem {
    /// Integer type of indices.
    pub(super) fn index(&self) -> ScalarType {
        index_type(self.input.numel())
    }

    /// The rows of the input.
    pub(super) fn extent(&self) -> Extent {
        Extent { rows: self.rows, n: self.classes, inner: 1 }
    }

    /// The divisor of an element's loss (or gradient).
    pub(super) fn divisor(&self) -> f64 {
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
