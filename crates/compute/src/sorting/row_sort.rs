//! Sorting of rows of a few thousand elements by radix sort in one workgroup ([`block_sort`]): an
//! element is read once and written once.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::block_sort::{self, BITS, BlockSort, Order, Shape, key_from_words, key_words};
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::row_operands::{Operands, RowOperands, Take, TakeKind};
use crate::primitives::sort_key;
use crate::sorting::key;
use crate::sorting::tile::median_rank;
use crate::view::View;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum length of a row.
const MAX_ROW: u32 = 4096;

/// Elements of an invocation of a small kernel: where registers are few, or where the driver
/// refuses larger ones.
const SMALL: u32 = 4;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    descending: bool,
    take_kind: TakeKind,
    shape: Shape,
    /// Neighbouring invocations load from adjacent rows.
    across: bool,
    /// Elements are indexed through positions.
    indirect: bool,
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        operands: RowOperands = (s.dtype, s.layout),
        positions: Option<Input> = s.indirect.then_some(DType::U32),
        /// Elements of a row.
        n: U32,
        /// The first rank that is written, and number of ranks.
        first: U32,
        count: U32,
    }
}

/// How a row of `padded` elements, a power of two of at least [`GROUP`], is distributed to
/// invocations.
fn shape(padded: u32, small: bool) -> Shape {
    let each = match padded {
        _ if small => SMALL,
        MAX_ROW => 16,
        _ => 8,
    };
    Shape { elements_per_invocation: each, threads: padded / each, separate_words: 1 }
}

/// The maximum length of a row for the adapter's shared memory.
pub fn max_row(cx: &Context) -> i64 {
    if cx.device.info().capabilities.has_few_registers() {
        return i64::from(SMALL * GROUP);
    }
    let room = cx.device.info().capabilities.max_shared_memory;
    i64::from(if shape(MAX_ROW, false).bytes() <= room { MAX_ROW } else { MAX_ROW / 2 })
}

/// Sorts rows of at most [`max_row`] elements; see [`super::tile::run`].
pub fn run(cx: &Context, o: &Operands, positions: Option<&View>, n: i64, descending: bool, take: Take) -> Result<()> {
    let smaller = |small: bool| (!small && n <= i64::from(SMALL * GROUP)).then_some(true);
    let run = |cx: &Context, small| run_sized(cx, o, positions, n, descending, take, small);
    cx.run_accepted(cx.device.info().capabilities.has_few_registers(), smaller, run)
}

fn run_sized(
    cx: &Context,
    o: &Operands,
    positions: Option<&View>,
    n: i64,
    descending: bool,
    take: Take,
    small: bool,
) -> Result<()> {
    let shape = shape((n as u32).next_power_of_two().max(GROUP), small);
    let mut spec = Spec {
        dtype: o.tensors[0].dtype,
        descending,
        take_kind: take.kind(),
        shape,
        across: false,
        indirect: positions.is_some(),
        layout: o.layout.spec(),
    };
    spec.across = o.across() && spec.rows() > 1;
    let words = spec.words();
    let all_words = Shape { separate_words: words, ..shape };
    if all_words.bytes() <= cx.device.info().capabilities.max_shared_memory / 2 {
        spec.shape = all_words;
    }
    let (first, count) = take.window();
    let groups = (o.rows as u64).div_ceil(u64::from(spec.rows()));
    cx.run(&spec, &Arguments { operands: o, positions, n: n as u32, first, count }, dense::folded(groups))
}

impl Spec {
    /// Length of a row with padding.
    fn padded(&self) -> u32 {
        self.shape.threads * self.shape.elements_per_invocation
    }

    /// Rows of a workgroup.
    fn rows(&self) -> u32 {
        GROUP / self.shape.threads
    }

    /// Whether a short key and its position are packed into one word.
    fn packed(&self) -> bool {
        key::bits(self.dtype) <= 16 && !self.indirect
    }

    fn words(&self) -> u32 {
        if self.packed() { 1 } else { key::dtype_of(self.dtype).bytes() as u32 / 4 + 1 }
    }

    /// Row in the workgroup and column of each element that an invocation loads.
    fn loaded<'b>(&self, b: &'b Builder) -> Vec<(Value<'b>, Value<'b>)> {
        let (me, rows) = (b.local_id(0), self.rows());
        (0..self.shape.elements_per_invocation)
            .map(|k| {
                let at = me + k * GROUP;
                if self.across {
                    (at & (rows - 1), at >> rows.ilog2())
                } else {
                    (b.u32(k * GROUP / self.padded()), at & (self.padded() - 1))
                }
            })
            .collect()
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "sort_row"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (dtype, o, index) = (self.dtype, &p.operands, self.layout.index);
        let (packed, padded, rows) = (self.packed(), self.padded(), self.rows());
        let sort = BlockSort::new(b, self.shape);
        let first_row = first_row(b, index, rows);
        let row_of = |row: Value<'b>| first_row + row.cast(index);
        // Rows whose numbers are constants of the kernel: offsets are computed once.
        let offsets: Vec<[Value; 3]> = (0..rows).map(|row| o.offsets(b, row_of(b.u32(row)).min(o.rows - 1))).collect();

        let mut words: Vec<Vec<Value>> = vec![Vec::new(); self.words() as usize];
        let mut slots = Vec::new();
        for (k, (row, column)) in (0..).zip(self.loaded(b)) {
            let inside = row_of(row).lt(o.rows) & column.lt(p.n);
            let within = column.min(p.n - 1);
            let position = p.positions.map_or(within, |positions| {
                positions.load(row_of(row).min(o.rows - 1) * p.n.cast(index) + within.cast(index))
            });
            let offset = if self.across {
                o.offsets(b, row_of(row).min(o.rows - 1))[0]
            } else {
                offsets[(k * GROUP / padded) as usize][0]
            };
            let key = key::of_bits(o.input.load(o.at(0, offset, position)), dtype, self.descending);
            let element = if packed { vec![(key << 16) | column] } else { [key_words(key), vec![position]].concat() };
            for (words, word) in words.iter_mut().zip(element) {
                words.push(inside.select(word, u32::MAX));
            }
            slots.push(row * padded + column);
        }
        // Without positions, an element's position is its index, which needs no memory.
        let moved = if packed || self.indirect { words.len() } else { words.len() - 1 };
        let mut own_words = sort.exchange(&words[..moved], &slots, Order::Blocked);
        if moved < words.len() {
            own_words.push(sort.columns());
        }

        let vars: Vec<Vec<_>> = own_words.iter().map(|values| values.iter().map(|&x| b.var(x)).collect()).collect();
        let values = || -> Vec<Vec<Value>> { vars.iter().map(|vars| vars.iter().map(|x| x.get()).collect()).collect() };
        let lowest = if packed { 16 } else { 0 };
        let shift = b.var(b.u32(lowest));
        b.while_(
            || shift.get().lt(lowest + key::bits(dtype)),
            || {
                let own_words = values();
                let ranks = sort.ranks(&self.digits(&own_words, shift.get()));
                for (vars, values) in vars.iter().zip(sort.exchange(&own_words, &ranks, Order::Blocked)) {
                    vars.iter().zip(values).for_each(|(var, value)| var.set(value));
                }
                shift.set(shift.get() + BITS);
            },
        );
        let sorted = sort.exchange(&values(), &sort.element_indices(Order::Blocked), Order::Striped);
        self.store_ranks(b, &p, &sort, &offsets, &sorted);
    }
}

impl Spec {
    /// The digits of the elements at a bit offset.
    fn digits<'b>(&self, words: &[Vec<Value<'b>>], shift: Value<'b>) -> Vec<Value<'b>> {
        let keys = key::dtype_of(self.dtype);
        (0..words[0].len()).map(|k| block_sort::digit(words, k, keys, shift)).collect()
    }

    /// Writes the requested ranks of the sorted elements, which are in striped order.
    fn store_ranks<'b>(
        &self,
        b: &'b Builder,
        p: &Parameters<'b>,
        sort: &BlockSort<'b>,
        offsets: &[[Value<'b>; 3]],
        words: &[Vec<Value<'b>>],
    ) {
        let (dtype, o, index) = (self.dtype, &p.operands, self.layout.index);
        let (packed, padded) = (self.packed(), self.padded());
        let slots = sort.element_indices(Order::Striped);
        let first: Vec<Value> = match self.take_kind {
            TakeKind::Ranks => vec![p.first; offsets.len()],
            TakeKind::Median { ignore_nan } => {
                // The highest word of a key is enough to recognise NaN.
                let top = if packed { 0 } else { words.len() - 2 };
                let (shift, nan) = if packed { (16, 0xffff) } else { (0, u32::MAX) };
                if dtype.is_float() {
                    sort.exchange(&words[top..=top], &slots, Order::Striped);
                }
                let number = |row: u32| move |i: Value<'b>| (sort.load(i + row * padded) >> shift).lt(nan);
                (0..self.rows()).map(|row| median_rank(dtype, ignore_nan, p.n, number(row))).collect()
            }
        };
        for (k, &at) in slots.iter().enumerate() {
            let row = (k as u32 * GROUP / padded) as usize;
            let (column, first) = (at & (padded - 1), first[row]);
            let inside = (first_row(b, index, self.rows()) + row as u32).lt(o.rows) & column.lt(p.n);
            b.if_(inside & column.ge(first) & (column - first).lt(p.count), || {
                let (key, position) = match words {
                    [word] => (word[k] >> 16, word[k] & 0xffff),
                    [key, position] => (key[k], position[k]),
                    [low, top, position] => (key_from_words(low[k], top[k]), position[k]),
                    _ => unreachable!("an element has one word, or two or three"),
                };
                let value = b.var(sort_key::to_bits(key, dtype, self.descending));
                if dtype.is_float() {
                    b.if_(sort_key::is_of_several(key, dtype, self.descending), || {
                        value.set(o.input.load(o.at(0, offsets[row][0], position)).cast(key.scalar()));
                    });
                }
                o.values.store(o.at(1, offsets[row][1], column - first), value.get());
                o.indices.store(o.at(2, offsets[row][2], column - first), position);
            });
        }
    }
}

/// The first row of the workgroup.
fn first_row<'b>(b: &'b Builder, index: ScalarType, rows: u32) -> Value<'b> {
    (b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index)) * rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let all = [TakeKind::Ranks, TakeKind::Median { ignore_nan: false }, TakeKind::Median { ignore_nan: true }];
        for (i, dtype) in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::F64].into_iter().enumerate() {
            for (take_kind, padded) in all.into_iter().zip([256, 2048, 4096]) {
                let index = if i % 2 == 0 { ScalarType::U32 } else { ScalarType::U64 };
                let layout = LayoutSpec { rank: i as u32, operands: 3, index };
                let (shape, descending) = (shape(padded, i == 0 && padded <= 4 * GROUP), i == 1);
                let (across, indirect) = (padded == 256, take_kind == TakeKind::Ranks && i == 2);
                accepted(&Spec { dtype, descending, take_kind, shape, across, indirect, layout }.build());
            }
        }
    }

    #[test]
    fn rows_fit_where_there_is_least_room() {
        assert!(shape(MAX_ROW / 2, false).bytes() <= 16 << 10 && shape(MAX_ROW, false).bytes() <= 32 << 10);
    }
}
