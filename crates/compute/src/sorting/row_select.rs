//! The few elements of lowest rank in rows of a few thousand, with one workgroup for each row: a
//! radix selection like [`select`](super::select)'s, with keys in registers. Ties between equal
//! keys are broken by position, which is used as further digits, so that the last selected element
//! is unique. The selected elements are then sorted by a network.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::prefix_sum;
use crate::primitives::radix_pass::{BITS, DIGITS};
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
    let spec = Spec {
        dtype: o.tensors[0].dtype,
        descending,
        elements_per_invocation: (o.n as u32).next_power_of_two() / GROUP,
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
        let positions: Vec<Value> = (0..elements_per_invocation).map(|k| me + k * GROUP).collect();
        // All loads are issued before the first use.
        let keys: Vec<Value> = positions
            .iter()
            .map(|&at| key::of_bits(o.input.load(o.at(0, offsets[0], at.min(p.n - 1))), dtype, self.descending))
            .collect();
        let search = DigitSearch {
            b,
            digits: b.shared(ScalarType::U32, 1, DIGITS),
            sums: prefix_sum::scratch(b, ScalarType::U32),
            found: b.shared(ScalarType::U32, 1, 2),
        };
        let there: Vec<Value> = positions.iter().map(|&at| at.lt(p.n)).collect();
        let (last, rest) = search.run(&keys, &there, key::bits(dtype), p.count - 1);
        let equal: Vec<Value> = keys.iter().zip(&there).map(|(&key, &there)| there & key.eq(last)).collect();
        let (last_position, _) = search.run(&positions, &equal, (elements_per_invocation * GROUP).ilog2(), rest);

        let wanted: Vec<Value> = (0..elements_per_invocation as usize)
            .map(|k| (there[k] & keys[k].lt(last)) | (equal[k] & positions[k].le(last_position)))
            .collect();
        let mine = wanted.iter().fold(b.u32(0), |sum, wanted| sum + wanted.cast(ScalarType::U32));
        let (inclusive, _) = prefix_sum::scan_groups(b, search.sums, mine, GROUP);
        let (chosen, chosen_positions) =
            (b.shared(key::dtype_of(dtype).compute(), 1, padded), b.shared(ScalarType::U32, 1, padded));
        b.if_(me.lt(padded), || {
            chosen.store(me, u64::MAX);
            chosen_positions.store(me, u32::MAX);
        });
        b.barrier();
        let mut slot = inclusive - mine;
        for k in 0..elements_per_invocation as usize {
            b.if_(wanted[k], || {
                chosen.store(slot, keys[k]);
                chosen_positions.store(slot, positions[k]);
            });
            slot = slot + wanted[k].cast(ScalarType::U32);
        }
        network(b, chosen, chosen_positions, padded, padded);
        b.if_(me.lt(p.count), || {
            let position = chosen_positions.load(me);
            o.values.store(o.at(1, offsets[1], me), o.input.load(o.at(0, offsets[0], position)));
            o.indices.store(o.at(2, offsets[2], me), position);
        });
    }
}

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
    /// The key with a given rank among the workgroup's keys that are `there`, which differ in their
    /// lowest `bits` bits, and its rank among equal keys.
    fn run(&self, keys: &[Value<'b>], there: &[Value<'b>], bits: u32, rank: Value<'b>) -> (Value<'b>, Value<'b>) {
        let (b, me) = (self.b, self.b.local_id(0));
        let scalar = keys[0].scalar();
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
                for (&key, &there) in keys.iter().zip(there) {
                    let digits = key >> low;
                    // Only keys that agree in the higher digits.
                    b.if_(there & (digits >> BITS).eq(found), || {
                        let digit = digits.cast(ScalarType::U32) & (DIGITS - 1);
                        self.digits.atomic(Atomic::Add, digit, b.u32(1));
                    });
                }
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
        for (dtype, elements_per_invocation, padded, index) in [
            (DType::F16, 2, 2, ScalarType::U32),
            (DType::F32, 16, 64, ScalarType::U32),
            (DType::I64, 16, 256, ScalarType::U64),
        ] {
            let layout = LayoutSpec { rank: 2, operands: 3, index };
            accepted(&Spec { dtype, descending: true, elements_per_invocation, padded, layout }.build());
        }
    }
}
