//! Operands that share memory.

use crate::check;
use crate::movement::copy::contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::Tensor;

/// Whether the bytes between the first and the last element of two tensors meet.
pub fn touches(a: &Tensor, b: &Tensor) -> bool {
    let (a, b) = (a.range(), b.range());
    a.start < b.end && b.start < a.end
}

fn dense(t: &Tensor) -> bool {
    let range = t.range();
    range.end - range.start == t.numel() as u64 * t.element_size()
}

/// PyTorch's `assert_no_overlap`: a dense result shares no memory with a dense input. Strided ones may interleave.
pub fn check_none(out: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    for &t in inputs {
        check!(
            !(touches(out, t) && dense(out) && dense(t)),
            Runtime,
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
             memory location. Please clone() the tensor before performing the operation."
        );
    }
    Ok(())
}

/// An input that a kernel may read while it writes `out`: a copy where they may share memory and
/// [`check_none`] lets them.
pub fn apart(call: &Call, out: &Tensor, input: &Tensor) -> Result<Tensor> {
    check_none(out, &[input])?;
    if touches(out, input) { contiguous(call, input) } else { Ok(input.clone()) }
}

/// An expanded tensor is written with a warning by a few operators, as on the CPU.
pub fn warn_if_expanded(call: &Call, t: &Tensor, name: &str) {
    if t.sizes.iter().zip(&t.strides).any(|(&n, &s)| n > 1 && s == 0) {
        call.host.warn(&format!(
            "Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this \
             operation. This also applies to advanced indexing e.g. tensor[indices] = tensor"
        ));
    }
}
