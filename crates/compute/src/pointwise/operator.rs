//! Operators on the pointwise kernel: arguments to operands, type promotion, and the result's
//! shape, strides and dtype.

use crate::pointwise::kernel::{Operand, tensors};
use crate::view::{Dims, View, layout};
use dml_kernel::DType;
use smallvec::SmallVec;

/// The dtype of the result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The promoted dtype of the inputs.
    Promote,
    /// The same, and nothing else: `out=` of another dtype is refused where
    /// [`Promote`](Rule::Promote) casts.
    Exact,
    /// Promoted, integers and bool become the default float dtype.
    Float,
    /// Computed in the promoted dtype, the result is bool.
    Bool,
    /// Computed in the promoted dtype, the result is of this one.
    As(DType),
}

/// The strides of a new result.
pub fn new_strides(sizes: &[i64], inputs: &[Operand]) -> Dims {
    if tensors(inputs).all(|t| t.sizes.as_slice() == sizes && t.is_contiguous()) {
        return View::contiguous_strides(sizes);
    }
    let expanded: SmallVec<[Dims; 4]> = tensors(inputs).map(|t| t.expanded_strides(sizes)).collect();
    let all: SmallVec<[&[i64]; 4]> = expanded.iter().map(Dims::as_slice).collect();
    layout::joint_strides(sizes, &all)
}
