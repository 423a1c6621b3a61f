//! The kernel that computes each element of its results from the element of each input at the same
//! index. All tensors are dense and have the same order of elements in memory.

use crate::builder::{Builder, Pointer, Value};
use crate::types::ScalarType;

/// Invocations in a workgroup of one-dimensional kernels.
pub const GROUP: u32 = 256;

/// Workgroups that every adapter allows in a dimension.
pub const MAX_GROUPS: u64 = 65_535;

/// The workgroups for at least `threads` invocations, [`GROUP`] per workgroup, [`folded`] into two
/// dimensions; the kernel gets its index from [`linear_id`].
pub fn groups(threads: u64) -> [u32; 3] {
    folded(threads.div_ceil(u64::from(GROUP)))
}

/// At least `groups` workgroups, and at least one, in two dimensions if one dimension does not
/// suffice.
pub fn folded(groups: u64) -> [u32; 3] {
    let groups = groups.max(1);
    if groups <= MAX_GROUPS {
        return [groups as u32, 1, 1];
    }
    let rows = groups.div_ceil(MAX_GROUPS);
    [groups.div_ceil(rows) as u32, rows as u32, 1]
}

/// Index of the invocation in a launch of [`groups`], as `scalar` (u32 or u64).
pub fn linear_id(b: &Builder, scalar: ScalarType) -> Value<'_> {
    let group = b.group_id(0).cast(scalar) + b.group_id(1).cast(scalar) * b.group_count(0).cast(scalar);
    group * GROUP + b.local_id(0).cast(scalar)
}

/// Writes the kernel for `n` elements (a value of the index type), of which each invocation
/// computes `lanes` neighbouring ones with wide accesses. A constant input has one element for all
/// results. Every input is read before a result is written.
pub fn write<'b>(
    b: &'b Builder,
    n: Value<'b>,
    lanes: u32,
    outs: &[Pointer<'b>],
    inputs: &[(Pointer<'b>, bool)],
    body: &dyn Fn(&[Value<'b>]) -> Vec<Value<'b>>,
) {
    write_chunk(b, linear_id(b, n.scalar()), n, lanes, outs, inputs, body);
}

/// As [`write()`], for an invocation that computes the `lanes` elements from `chunk * lanes` on, as
/// far as they are below `n`.
pub fn write_chunk<'b>(
    b: &'b Builder,
    chunk: Value<'b>,
    n: Value<'b>,
    lanes: u32,
    outs: &[Pointer<'b>],
    inputs: &[(Pointer<'b>, bool)],
    body: &dyn Fn(&[Value<'b>]) -> Vec<Value<'b>>,
) {
    let first = chunk * lanes;
    b.if_((first + (lanes - 1)).lt(n), || {
        let loaded: Vec<Vec<Value>> = inputs
            .iter()
            .map(|&(p, constant)| if constant { vec![p.load(0); lanes as usize] } else { p.load_chunk(chunk, lanes) })
            .collect();
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); outs.len()];
        for lane in 0..lanes as usize {
            let values: Vec<Value> = loaded.iter().map(|l| l[lane]).collect();
            for (slot, value) in results.iter_mut().zip(body(&values)) {
                slot.push(value);
            }
        }
        for (pointer, values) in outs.iter().zip(&results) {
            pointer.store_chunk(chunk, values);
        }
    });
    if lanes > 1 {
        // The invocation at the ragged end accesses its elements one by one.
        b.if_(first.lt(n) & (first + (lanes - 1)).ge(n), || {
            b.for_(first, n, 1, |i| {
                let loaded: Vec<Value> =
                    inputs.iter().map(|&(p, constant)| if constant { p.load(0) } else { p.load(i) }).collect();
                for (pointer, value) in outs.iter().zip(body(&loaded)) {
                    pointer.store(i, value);
                }
            });
        });
    }
}
