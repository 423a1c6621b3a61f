//! Operands that share memory.

use crate::check;
use crate::operator::error::Result;
use crate::tensor::layout::is_dense;
use crate::tensor::{Dims, Tensor};

/// Whether the bytes between the first and the last element of two tensors meet.
pub fn touches(a: &Tensor, b: &Tensor) -> bool {
    let (a, b) = (a.range(), b.range());
    a.start < b.end && b.start < a.end
}

/// Whether several elements are one place in memory, because the tensor is expanded. An empty one has no elements.
pub fn is_expanded(t: &Tensor) -> bool {
    t.sizes.iter().zip(&t.strides).any(|(&n, &s)| n > 1 && s == 0) && t.numel() != 0
}

/// Each place of an expanded tensor once, for operators that write the same value everywhere.
pub fn unexpanded(t: &Tensor) -> Tensor {
    let sizes: Dims = t.sizes.iter().zip(&t.strides).map(|(&n, &s)| if s == 0 { n.min(1) } else { n }).collect();
    t.as_strided(&sizes, &t.strides, 0)
}

/// What is said of an expanded tensor that is to be written.
pub const SHARED: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
                          location. Please clone() the tensor before performing the operation.";

/// PyTorch's `assert_no_internal_overlap`: an expanded tensor cannot be written.
pub fn check_internal(t: &Tensor) -> Result<()> {
    check!(!is_expanded(t), Runtime, "{SHARED}");
    Ok(())
}

/// PyTorch's `assert_no_partial_overlap`: a dense result lies as a dense input does, strides and all, or shares no memory with it.
pub fn check_partial<'t>(out: &Tensor, inputs: impl IntoIterator<Item = &'t Tensor>) -> Result<()> {
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

/// PyTorch's `assert_no_overlap`: a result is not an input, not an empty one either, and a dense one shares no memory with a
/// dense input. Strided ones are not judged: they may interleave without touching.
pub fn check_none(out: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    for &t in inputs {
        let same = out.handle != 0 && out.handle == t.handle;
        check!(
            !(same || (touches(out, t) && is_dense(out) && is_dense(t))),
            Runtime,
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
             memory location. Please clone() the tensor before performing the operation."
        );
    }
    Ok(())
}
