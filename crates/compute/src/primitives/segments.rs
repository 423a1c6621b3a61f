//! Entries of a sorted list with equal keys, in order.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::max_loop_iterations;
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Divides the entries of each key, at most `entries`, into parts of one launch each: how many
/// entries come before the part, and the maximum number in it.
pub fn parts(cx: &Context, entries: i64) -> impl Iterator<Item = [u32; 2]> {
    let most = max_loop_iterations(cx).unwrap_or(i64::from(u32::MAX));
    (0..entries).step_by(most as usize).map(move |skipped| [skipped as u32, most as u32])
}

/// The indices in the sorted `keys` (u32) at which the entries of each key below `count` begin, and
/// the end of the last one: `count` + 1 numbers (u32). They are found once for each key, since many
/// elements share one.
pub fn starts(cx: &Context, keys: &View, count: u32) -> Result<View> {
    let boundaries = i64::from(count) + 1;
    let starts = cx.empty(DType::U32, &[boundaries])?;
    let arguments =
        StartsArguments { starts: &starts, keys, entries: keys.numel() as u32, boundaries: boundaries as u32 };
    cx.run_threads(&StartsSpec, &arguments, boundaries as u64)?;
    Ok(starts)
}

/// Runs `body` for each index of the sorted list whose key is `key` (u32), in order, within one of
/// the [`parts`]. `starts` is the result of [`starts`].
pub fn for_each_of_key<'b>(
    b: &'b Builder,
    starts: Pointer<'b>,
    key: Value<'b>,
    [skipped, most]: [Value<'b>; 2],
    body: impl FnOnce(Value<'b>),
) {
    let (first, end) = (starts.load(key), starts.load(key + 1));
    let first = first + skipped.min(end - first);
    b.for_(first, first + most.min(end - first), 1, body);
}

/// The kernel of [`starts`], which has no specialisations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StartsSpec;

parameters! {
    StartsSpec as _s => StartsArguments, StartsParameters {
        starts: Output = DType::U32,
        keys: Input = DType::U32,
        entries: U32,
        boundaries: U32,
    }
}

/// Searches for each key in the sorted list.
impl KernelSpec for StartsSpec {
    fn name(&self) -> &'static str {
        "segment_starts"
    }

    fn write<'b>(&self, b: &'b Builder, p: StartsParameters<'b>) {
        let key = linear_id(b, ScalarType::U32);
        b.if_(key.lt(p.boundaries), || p.starts.store(key, lower_bound(b, p.keys, p.entries, key)));
    }
}

/// The index of the first of `n` sorted keys that is not below `key`.
fn lower_bound<'b>(b: &'b Builder, keys: Pointer<'b>, n: Value<'b>, key: Value<'b>) -> Value<'b> {
    let (low, high) = (b.var(b.int(ScalarType::U32, 0)), b.var(n));
    b.while_(
        || low.get().lt(high.get()),
        || {
            let middle = (low.get() + high.get()) >> 1;
            let below = keys.load(middle).lt(key);
            low.set(below.select(middle + 1, low.get()));
            high.set(below.select(high.get(), middle));
        },
    );
    low.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&StartsSpec.build());
    }
}
