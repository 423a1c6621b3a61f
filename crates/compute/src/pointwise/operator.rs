//! The results of the pointwise kernel: dtypes and strides.

pub use crate::pointwise::rule::Rule;

use crate::pointwise::kernel::{Operand, tensors};
use crate::view::{Dims, View, layout};
use smallvec::SmallVec;

/// The strides of a new result.
pub fn new_strides(sizes: &[i64], inputs: &[Operand]) -> Dims {
    if tensors(inputs).all(|t| t.sizes.as_slice() == sizes && t.is_contiguous()) {
        return View::contiguous_strides(sizes);
    }
    let expanded: SmallVec<[Dims; 4]> = tensors(inputs).map(|t| t.expanded_strides(sizes)).collect();
    let all: SmallVec<[&[i64]; 4]> = expanded.iter().map(Dims::as_slice).collect();
    layout::result_strides_of(sizes, &all)
}
