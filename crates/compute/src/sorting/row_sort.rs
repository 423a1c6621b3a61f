//! Rows of a few thousand elements, sorted digit by digit in one workgroup
//! ([`block_sort`]): an element is read once and written once.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::block_sort::{self, BITS, BlockSort, Order, Shape, halves, joined};
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::row_operands::{Operands, RowOperands, Take, Taken};
use crate::primitives::sort_key;
use crate::sorting::key;
use crate::sorting::tile::median_rank;
use crate::view::View;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The longest row.
const MAX_ROW: u32 = 4096;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    descending: bool,
    taken: Taken,
    shape: Shape,
    /// Neighbouring invocations load from neighbouring rows.
    across: bool,
    /// Elements are found through positions.
    indirect: bool,
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        operands: RowOperands = (s.dtype, s.layout),
        positions: Option<Input> = s.indirect.then_some(DType::U32),
        /// Elements of a row.
        n: U32,
        /// The first rank that is written, and how many.
        first: U32,
        count: U32,
    }
}

/// How a row of so many elements, a power of two of at least [`GROUP`], is shared.
fn shape(padded: u32) -> Shape {
    let each = if padded == MAX_ROW { 16 } else { 8 };
    Shape { each, threads: padded / each, together: 1 }
}

/// The longest row that the adapter's shared memory holds.
pub fn max_row(cx: &Context) -> i64 {
    let room = cx.device.info().capabilities.max_shared_memory;
    i64::from(if shape(MAX_ROW).bytes() <= room { MAX_ROW } else { MAX_ROW / 2 })
}

/// Sorts rows of at most [`max_row`] elements; see [`super::tile::run`].
pub fn run(cx: &Context, o: &Operands, positions: Option<&View>, n: i64, descending: bool, take: Take) -> Result<()> {
    let shape = shape((n as u32).next_power_of_two().max(GROUP));
    let mut spec = Spec {
        dtype: o.tensors[0].dtype,
        descending,
        taken: take.kind(),
        shape,
        across: false,
        indirect: positions.is_some(),
        layout: o.layout.spec(),
    };
    spec.across = o.across() && spec.rows() > 1;
    let words = spec.words();
    let together = Shape { together: words, ..shape };
    if together.bytes() <= cx.device.info().capabilities.max_shared_memory / 2 {
        spec.shape = together;
    }
    let (first, count) = take.window();
    let groups = (o.rows as u64).div_ceil(u64::from(spec.rows()));
    cx.run(&spec, &Arguments { operands: o, positions, n: n as u32, first, count }, dense::folded(groups))
}

impl Spec {
    /// Elements of a row, with those that only fill it up.
    fn padded(&self) -> u32 {
        self.shape.threads * self.shape.each
    }

    /// Rows of a workgroup.
    fn rows(&self) -> u32 {
        GROUP / self.shape.threads
    }

    /// A short key and its position share a word.
    fn packed(&self) -> bool {
        key::bits(self.dtype) <= 16 && !self.indirect
    }

    fn words(&self) -> u32 {
        if self.packed() { 1 } else { key::dtype_of(self.dtype).bytes() as u32 / 4 + 1 }
    }

    /// Row in the workgroup and column of the elements that an invocation loads.
    fn loaded<'b>(&self, b: &'b Builder) -> Vec<(Value<'b>, Value<'b>)> {
        let (me, rows) = (b.local_id(0), self.rows());
        (0..self.shape.each)
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
        // Of rows that are known while the kernel is written: offsets are computed once.
        let offsets: Vec<[Value; 3]> = (0..rows).map(|row| o.offsets(b, row_of(b.u32(row)).min(o.rows - 1))).collect();

        let mut words: Vec<Vec<Value>> = vec![Vec::new(); self.words() as usize];
        let mut places = Vec::new();
        for (k, (row, column)) in (0..).zip(self.loaded(b)) {
            let inside = row_of(row).lt(o.rows) & column.lt(p.n);
            let within = column.min(p.n - 1);
            let place = p.positions.map_or(within, |positions| {
                positions.load(row_of(row).min(o.rows - 1) * p.n.cast(index) + within.cast(index))
            });
            let offset = if self.across {
                o.offsets(b, row_of(row).min(o.rows - 1))[0]
            } else {
                offsets[(k * GROUP / padded) as usize][0]
            };
            let key = key::of_bits(o.input.load(o.at(0, offset, place)), dtype, self.descending);
            let element = if packed { vec![(key << 16) | column] } else { [halves(key), vec![place]].concat() };
            for (words, word) in words.iter_mut().zip(element) {
                words.push(inside.select(word, u32::MAX));
            }
            places.push(row * padded + column);
        }
        // Without positions an element's place in its row needs no memory.
        let moved = if packed || self.indirect { words.len() } else { words.len() - 1 };
        let mut held = sort.exchange(&words[..moved], &places, Order::Blocked);
        if moved < words.len() {
            held.push(sort.columns());
        }

        let vars: Vec<Vec<_>> = held.iter().map(|values| values.iter().map(|&x| b.var(x)).collect()).collect();
        let values = || -> Vec<Vec<Value>> { vars.iter().map(|vars| vars.iter().map(|x| x.get()).collect()).collect() };
        let lowest = if packed { 16 } else { 0 };
        let shift = b.var(b.u32(lowest));
        b.while_(
            || shift.get().lt(lowest + key::bits(dtype)),
            || {
                let held = values();
                let places = sort.ranks(&self.digits(&held, shift.get()));
                for (vars, values) in vars.iter().zip(sort.exchange(&held, &places, Order::Blocked)) {
                    vars.iter().zip(values).for_each(|(var, value)| var.set(value));
                }
                shift.set(shift.get() + BITS);
            },
        );
        let sorted = sort.exchange(&values(), &sort.places(Order::Blocked), Order::Striped);
        self.write_out(b, &p, &sort, &offsets, &sorted);
    }
}

impl Spec {
    /// The digits of the elements at a shift.
    fn digits<'b>(&self, words: &[Vec<Value<'b>>], shift: Value<'b>) -> Vec<Value<'b>> {
        let keys = key::dtype_of(self.dtype);
        (0..words[0].len()).map(|k| block_sort::digit(words, k, keys, shift)).collect()
    }

    /// Writes what is wanted of the sorted elements, which are held striped.
    fn write_out<'b>(
        &self,
        b: &'b Builder,
        p: &Parameters<'b>,
        sort: &BlockSort<'b>,
        offsets: &[[Value<'b>; 3]],
        words: &[Vec<Value<'b>>],
    ) {
        let (dtype, o, index) = (self.dtype, &p.operands, self.layout.index);
        let (packed, padded) = (self.packed(), self.padded());
        let places = sort.places(Order::Striped);
        let first: Vec<Value> = match self.taken {
            Taken::Ranks => vec![p.first; offsets.len()],
            Taken::Median { ignore_nan } => {
                // The highest word of a key tells whether it is NaN's.
                let top = if packed { 0 } else { words.len() - 2 };
                let (shift, nan) = if packed { (16, 0xffff) } else { (0, u32::MAX) };
                if dtype.is_float() {
                    sort.exchange(&words[top..=top], &places, Order::Striped);
                }
                let number = |row: u32| move |i: Value<'b>| (sort.load(i + row * padded) >> shift).lt(nan);
                (0..self.rows()).map(|row| median_rank(dtype, ignore_nan, p.n, number(row))).collect()
            }
        };
        for (k, &at) in places.iter().enumerate() {
            let row = (k as u32 * GROUP / padded) as usize;
            let (column, first) = (at & (padded - 1), first[row]);
            let inside = (first_row(b, index, self.rows()) + row as u32).lt(o.rows) & column.lt(p.n);
            b.if_(inside & column.ge(first) & (column - first).lt(p.count), || {
                let (key, place) = match words {
                    [word] => (word[k] >> 16, word[k] & 0xffff),
                    [key, place] => (key[k], place[k]),
                    [low, top, place] => (joined(low[k], top[k]), place[k]),
                    _ => unreachable!("an element has one word, or two or three"),
                };
                let value = b.var(sort_key::to_bits(key, dtype, self.descending));
                if dtype.is_float() {
                    b.if_(sort_key::is_of_several(key, dtype, self.descending), || {
                        value.set(o.input.load(o.at(0, offsets[row][0], place)).cast(key.scalar()));
                    });
                }
                o.values.store(o.at(1, offsets[row][1], column - first), value.get());
                o.indices.store(o.at(2, offsets[row][2], column - first), place);
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
        let all = [Taken::Ranks, Taken::Median { ignore_nan: false }, Taken::Median { ignore_nan: true }];
        for (i, dtype) in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::F64].into_iter().enumerate() {
            for (taken, padded) in all.into_iter().zip([256, 2048, 4096]) {
                let index = if i % 2 == 0 { ScalarType::U32 } else { ScalarType::U64 };
                let layout = LayoutSpec { rank: i as u32, operands: 3, index };
                let (shape, descending) = (shape(padded), i == 1);
                let (across, indirect) = (padded == 256, taken == Taken::Ranks && i == 2);
                accepted(&Spec { dtype, descending, taken, shape, across, indirect, layout }.build());
            }
        }
    }

    #[test]
    fn rows_fit_where_there_is_least_room() {
        assert!(shape(MAX_ROW / 2).bytes() <= 16 << 10 && shape(MAX_ROW).bytes() <= 32 << 10);
    }
}
