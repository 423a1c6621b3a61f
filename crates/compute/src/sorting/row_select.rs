//! The few elements of lowest rank in rows of a few thousand, with one workgroup for each row: a
//! radix selection like [`select`](super::select)'s, with keys in registers, or loaded for each
//! digit where registers do not hold them. Ties between equal keys are broken by position, which is
//! used as further digits, so that the last selected element is unique. The selected elements are
//! then sorted by a network.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::prefix_sum;
use crate::primitives::radix_pass::{BITS, DIGITS, keys_at_a_time};
use crate::primitives::row_operands::{Operands, RowOperands};
use crate::sorting::key;
use crate::sorting::tile::network;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Shared, Value};

/// Row lengths: the maximum, and the minimum from which this is faster than sorting the row.
const ROWS: std::ops::RangeInclusive<i64> = 512..=4096;

/// Maximum number of selected elements.
const MAX_SELECTED: i64 = 256;

/// Whether selecting the `count` first of rows of `n` is implemented here.
pub fn takes(n: i64, count: i64) -> bool {
    ROWS.contains(&n) && count <= MAX_SELECTED && count * 4 <= n
}

/// Writes the `count` first elements of each row, in order.
pub fn run(cx: &Context, o: &Operands, count: i64, descending: bool) -> Result<()> {
    let dtype = o.tensors[0].dtype;
    let elements_per_invocation = (o.n as u32).next_power_of_two() / GROUP;
    let registers = cx.device.info().capabilities.registers;
    let spec = Spec {
        dtype,
        descending,
        elements_per_invocation,
        at_a_time: keys_at_a_time(registers, key::dtype_of(dtype), elements_per_invocation),
        padded: (count as u32).next_power_of_two().max(2),
        layout: o.layout.spec(),
    };
    let arguments = Arguments { operands: o, n: o.n as u32, count: count as u32 };
    cx.run(&spec, &arguments, dense::folded(o.rows as u64))
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    descending: bool,
    /// Elements of an invocation.
    elements_per_invocation: u32,
    /// Elements whose keys it holds at a time: with fewer than all, keys are loaded for each digit.
    at_a_time: u32,
    /// Number of selected elements, rounded up to a power of two.
    padded: u32,
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        operands: RowOperands = (s.dtype, s.layout),
        n: U32,
        count: U32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "select_row"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let &Spec { dtype, elements_per_invocation, padded, .. } = self;
        let (o, index, me) = (&p.operands, self.layout.index, b.local_id(0));
        let row = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        b.if_(row.ge(o.rows), || b.return_());
        let offsets = o.offsets(b, row);
        let elements = |first: Value<'b>| {
            let positions: Vec<Value> = (0..self.at_a_time).map(|k| first + k * GROUP).collect();
            // All loads are issued before the first use.
            let keys: Vec<Value> = positions
                .iter()
                .map(|&at| key::of_bits(o.input.load(o.at(0, offsets[0], at.min(p.n - 1))), dtype, self.descending))
                .collect();
            (positions, keys)
        };
        let there = |positions: &[Value<'b>]| positions.iter().map(|&at| at.lt(p.n)).collect::<Vec<_>>();
        let held = (self.at_a_time == elements_per_invocation).then(|| elements(me));
        let search = DigitSearch {
            b,
            digits: b.shared(ScalarType::U32, 1, DIGITS),
            sums: prefix_sum::scratch(b, ScalarType::U32),
            found: b.shared(ScalarType::U32, 1, 2),
        };
        let held = held.map(|(positions, keys)| (there(&positions), positions, keys));
        // Runs code for the elements, a few at a time.
        let each = |take: &Take<'_, 'b>| match &held {
            Some((there, positions, keys)) => take(there, positions, keys),
            None => b.for_(me, p.n, self.at_a_time * GROUP, |first| {
                let (positions, keys) = elements(first);
                take(&there(&positions), &positions, &keys);
            }),
        };
        let scalar = key::dtype_of(dtype).compute();
        let by_key = |take: &dyn Fn(&[Value<'b>], &[Value<'b>])| each(&|there, _, keys| take(keys, there));
        let (last, rest) = search.run(&by_key, scalar, key::bits(dtype), p.count - 1);
        let are_equal = |there: &[Value<'b>], keys: &[Value<'b>]| -> Vec<Value<'b>> {
            keys.iter().zip(there).map(|(&key, &there)| there & key.eq(last)).collect()
        };
        let equal = held.as_ref().map(|(there, _, keys)| are_equal(there, keys));
        let by_position = |take: &dyn Fn(&[Value<'b>], &[Value<'b>])| {
            each(&|there, positions, keys| match &equal {
                Some(equal) => take(positions, equal),
                None => take(positions, &are_equal(there, keys)),
            });
        };
        let bits = (elements_per_invocation * GROUP).ilog2();
        let (last_position, _) = search.run(&by_position, ScalarType::U32, bits, rest);

        let are_wanted = |there: &[Value<'b>], positions: &[Value<'b>], keys: &[Value<'b>]| -> Vec<Value<'b>> {
            let again;
            let equal = match &equal {
                Some(equal) => equal,
                None => {
                    again = are_equal(there, keys);
                    &again
                }
            };
            (0..keys.len())
                .map(|k| (there[k] & keys[k].lt(last)) | (equal[k] & positions[k].le(last_position)))
                .collect()
        };
        let wanted = held.as_ref().map(|(there, positions, keys)| are_wanted(there, positions, keys));
        let count = |all: &[Value<'b>]| all.iter().fold(b.u32(0), |sum, wanted| sum + wanted.cast(ScalarType::U32));
        let mine = match &wanted {
            Some(wanted) => count(wanted),
            None => {
                let mine = b.var(b.u32(0));
                each(&|there, positions, keys| mine.set(mine.get() + count(&are_wanted(there, positions, keys))));
                mine.get()
            }
        };
        let (inclusive, _) = prefix_sum::scan_groups(b, search.sums, mine, GROUP);
        let (chosen, chosen_positions) = (b.shared(scalar, 1, padded), b.shared(ScalarType::U32, 1, padded));
        b.if_(me.lt(padded), || {
            chosen.store(me, u64::MAX);
            chosen_positions.store(me, u32::MAX);
        });
        b.barrier();
        // Stores what is wanted from a slot on. Returns the next slot.
        let store = |mut slot: Value<'b>, wanted: &[Value<'b>], positions: &[Value<'b>], keys: &[Value<'b>]| {
            for ((&wanted, &position), &key) in wanted.iter().zip(positions).zip(keys) {
                b.if_(wanted, || {
                    chosen.store(slot, key);
                    chosen_positions.store(slot, position);
                });
                slot = slot + wanted.cast(ScalarType::U32);
            }
            slot
        };
        match (&wanted, &held) {
            (Some(wanted), Some((_, positions, keys))) => {
                store(inclusive - mine, wanted, positions, keys);
            }
            _ => {
                let slot = b.var(inclusive - mine);
                each(&|there, positions, keys| {
                    slot.set(store(slot.get(), &are_wanted(there, positions, keys), positions, keys));
                });
            }
        }
        network(b, chosen, chosen_positions, padded, padded);
        b.if_(me.lt(p.count), || {
            let position = chosen_positions.load(me);
            o.values.store(o.at(1, offsets[1], me), o.input.load(o.at(0, offsets[0], position)));
            o.indices.store(o.at(2, offsets[2], me), position);
        });
    }
}

/// Code for a few elements: whether they exist, their positions, and their keys.
type Take<'t, 'b> = dyn Fn(&[Value<'b>], &[Value<'b>], &[Value<'b>]) + 't;

/// Code that runs other code for keys, and whether they are there, a few at a time.
type Each<'e, 'b> = dyn Fn(&dyn Fn(&[Value<'b>], &[Value<'b>])) + 'e;

/// Shared memory of a search.
struct DigitSearch<'b> {
    b: &'b Builder,
    /// Histogram of the digits.
    digits: Shared<'b>,
    sums: Shared<'b>,
    /// The digit that was found, and the rank among the keys with this digit.
    found: Shared<'b>,
}

impl<'b> DigitSearch<'b> {
    /// The key with a given rank among the workgroup's keys that are there, which differ in their
    /// lowest `bits` bits, and its rank among equal keys. `each` runs code for keys, and whether
    /// they are there, a few at a time.
    fn run(&self, each: &Each<'_, 'b>, scalar: ScalarType, bits: u32, rank: Value<'b>) -> (Value<'b>, Value<'b>) {
        let (b, me) = (self.b, self.b.local_id(0));
        // Bits from `shift` on are those of the wanted key; none are known at first.
        let (prefix, rank) = (b.var(b.int(scalar, 0)), b.var(rank));
        let shift = b.var(b.u32(bits.next_multiple_of(BITS)));
        b.while_(
            || shift.get().gt(0),
            || {
                let known = shift.get();
                shift.set(known - BITS);
                let (low, found, wanted) = (shift.get().cast(scalar), prefix.get(), rank.get());
                self.digits.store(me, b.u32(0));
                b.barrier();
                each(&|keys, there| {
                    for (&key, &there) in keys.iter().zip(there) {
                        let digits = key >> low;
                        // Only keys that agree in the higher digits.
                        b.if_(there & (digits >> BITS).eq(found), || {
                            let digit = digits.cast(ScalarType::U32) & (DIGITS - 1);
                            self.digits.atomic(Atomic::Add, digit, b.u32(1));
                        });
                    }
                });
                b.barrier();
                let here = self.digits.load(me);
                let (inclusive, _) = prefix_sum::scan_groups(b, self.sums, here, GROUP);
                let before = inclusive - here;
                // True for exactly one digit.
                b.if_(wanted.ge(before) & wanted.lt(inclusive), || {
                    self.found.store(0, me);
                    self.found.store(1, wanted - before);
                });
                b.barrier();
                prefix.set((found << BITS) | self.found.load(0).cast(scalar));
                rank.set(self.found.load(1));
            },
        );
        (prefix.get(), rank.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, elements_per_invocation, at_a_time, padded, index) in [
            (DType::F16, 2, 2, 2, ScalarType::U32),
            (DType::F32, 16, 16, 64, ScalarType::U32),
            (DType::I64, 16, 16, 256, ScalarType::U64),
            (DType::I64, 16, 8, 256, ScalarType::U32),
        ] {
            let layout = LayoutSpec { rank: 2, operands: 3, index };
            accepted(&Spec { dtype, descending: true, elements_per_invocation, at_a_time, padded, layout }.build());
        }
    }
}
