//! The layout of a workgroup's shared memory in attention.

use crate::attention::spec::{ACROSS, PATCH, Role, Spec};
use dml_kernel::Value;

/// Sizes of shared memory in elements: tiles, weights, numbers, accumulators that wait, and what
/// waits with them of the softmax.
pub fn shared(spec: &Spec) -> [u32; 5] {
    let tiles =
        (PATCH * spec.depth * (pitch(spec.rows()) + pitch(spec.columns()))).max(spec.staged_rows() * spec.width);
    let parked = if spec.parks_sums { spec.rows() * spec.width } else { 0 };
    let softmax = if spec.parks_sums && spec.role == Role::Forward { 4 * spec.rows() * ACROSS } else { 0 };
    [tiles, PATCH * spec.columns() * pitch(spec.rows()), spec.rows() * ACROSS, parked, softmax]
}

/// Bytes of shared memory of a workgroup.
pub fn shared_bytes(spec: &Spec) -> u32 {
    shared(spec).iter().sum::<u32>() * spec.dtype.compute().bytes()
}

/// Position of a vector of `count` rows for element `k` of an inner product. Four elements of eight
/// neighbours are stored at once, and with [`pitch`] no two of them are in one bank.
pub fn swizzled<'b>(vector: Value<'b>, k: Value<'b>, count: u32) -> Value<'b> {
    vector ^ ((k / PATCH) & ((count / PATCH).min(8) - 1))
}

/// Distance between one element's vectors of `rows` rows and the next element's; one more than
/// needed, so that neighbours are in different banks.
pub fn pitch(rows: u32) -> u32 {
    rows / PATCH + 1
}
