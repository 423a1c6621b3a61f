//! Entries of a sorted list that have one key, in order.

use super::loops::turns_allowed;
use crate::operator::call::Call;
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// A list of so many entries in parts that a launch each may walk: of the entries of each key, how many come before the part, and
/// how many are in it at most.
pub fn parts(call: &Call, entries: i64) -> impl Iterator<Item = [u32; 2]> {
    // Beside the search for the first one.
    let most = turns_allowed(call).map_or(i64::from(u32::MAX), |turns| turns - 64);
    (0..entries).step_by(most as usize).map(move |skipped| [skipped as u32, most as u32])
}

/// Runs `body` for the place of each of the `n` sorted `keys` (u32, as are `n` and `key`) that is `key`, in order, of one
/// of the [`parts`].
pub fn for_each_of_key<'b>(
    b: &'b Builder,
    keys: Pointer<'b>,
    n: Value<'b>,
    key: Value<'b>,
    [skipped, most]: [Value<'b>; 2],
    body: impl FnOnce(Value<'b>),
) {
    let first = lower_bound(b, keys, n, key);
    let first = first + skipped.min(n - first);
    let end = first + most.min(n - first);
    let place = b.var(first);
    let more = b.var(b.bool(false));
    let look = || {
        let now = place.get();
        more.set(false);
        b.if_(now.lt(end), || more.set(keys.load(now).eq(key)));
    };
    look();
    b.while_(
        || more.get(),
        || {
            body(place.get());
            place.set(place.get() + 1);
            look();
        },
    );
}

/// The first of `n` sorted keys that is not below `key`.
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
