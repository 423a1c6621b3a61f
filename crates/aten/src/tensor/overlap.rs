//! PyTorch's rules for operands with overlapping memory.

use crate::check;
use crate::operator::error::Result;
use dml_compute::view::View;
use dml_compute::view::layout::is_dense;
use dml_compute::view::overlap::{is_expanded, ranges_overlap};

/// The error message for an expanded tensor that would be written.
pub const SHARED: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
                          location. Please clone() the tensor before performing the operation.";

/// PyTorch's `assert_no_internal_overlap`: an expanded tensor cannot be written.
pub fn check_internal(t: &View) -> Result<()> {
    check!(!is_expanded(t), Runtime, "{SHARED}");
    Ok(())
}

/// PyTorch's `assert_no_partial_overlap`: a dense result has the same memory and strides as a dense
/// input, or does not overlap it.
pub fn check_partial<'t>(out: &View, inputs: impl IntoIterator<Item = &'t View>) -> Result<()> {
    for t in inputs {
        let same = t.data == out.data
            && t.strides == out.strides
            && t.element_size() == out.element_size()
            && t.numel() == out.numel();
        if !same {
            check_none(out, &[t])?;
        }
    }
    Ok(())
}

/// PyTorch's `assert_no_overlap`: a result is not an input, even if it is empty, and a dense result
/// does not overlap a dense input. Strided ones are not checked: they may interleave without
/// overlapping.
pub fn check_none(out: &View, inputs: &[&View]) -> Result<()> {
    for &t in inputs {
        let same = out.handle != 0 && out.handle == t.handle;
        check!(
            !(same || (ranges_overlap(out, t) && is_dense(out) && is_dense(t))),
            Runtime,
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
             memory location. Please clone() the tensor before performing the operation."
        );
    }
    Ok(())
}
