//! Sorting of rows that fit a workgroup's shared memory; the shortest by a bitonic network on pairs
//! of key and position (K. Batcher, "Sorting networks and their applications", 1968). The position
//! breaks ties, which makes the sort stable.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::row_operands::{Operands, RowOperands, Take, TakeKind};
use crate::sorting::{key, row_sort};
use crate::view::View;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, ScalarType, Shared, Value};

/// Maximum length of a row that is sorted by a network, whose depth grows with the square of the
/// length's logarithm.
const MAX_ROW: u32 = 128;

/// Elements of a workgroup: several rows.
const TILE: u32 = 512;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    descending: bool,
    take_kind: TakeKind,
    /// Elements of a row, a power of two.
    padded: u32,
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

/// Maximum length of a row for [`run`].
pub fn max_row(cx: &Context) -> i64 {
    row_sort::max_row(cx)
}

/// Sorts rows of at most [`max_row`] elements, and writes the ranks of `take`. With `positions`
/// (u32, `[rows, n]`), a row's elements are those at the positions; equal elements then keep the
/// order of the list, or that of their positions.
pub fn run(cx: &Context, o: &Operands, positions: Option<&View>, n: i64, descending: bool, take: Take) -> Result<()> {
    let run = |cx: &Context, in_network| {
        let sort = if in_network { by_network } else { row_sort::run };
        sort(cx, o, positions, n, descending, take)
    };
    cx.run_accepted(n <= i64::from(MAX_ROW), |in_network| in_network.then_some(false), run)
}

fn by_network(
    cx: &Context,
    o: &Operands,
    positions: Option<&View>,
    n: i64,
    descending: bool,
    take: Take,
) -> Result<()> {
    let padded = (n as u32).next_power_of_two().max(2);
    let spec = Spec {
        dtype: o.tensors[0].dtype,
        descending,
        take_kind: take.kind(),
        padded,
        across: o.across(),
        indirect: positions.is_some(),
        layout: o.layout.spec(),
    };
    let (first, count) = take.window();
    let groups = (o.rows as u64).div_ceil(u64::from(TILE / padded));
    cx.run(&spec, &Arguments { operands: o, positions, n: n as u32, first, count }, dense::folded(groups))
}

/// An element of the workgroup's tile: its row in the tensor, the row's first index in the tile,
/// and the index in the row.
struct Element<'b> {
    row: Value<'b>,
    base: Value<'b>,
    column: Value<'b>,
}

impl Spec {
    /// Runs `body` for this invocation's elements.
    fn each<'b>(&self, b: &'b Builder, body: impl FnOnce(Element<'b>)) {
        let rows = TILE / self.padded;
        let index = self.layout.index;
        let group = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        b.for_(b.local_id(0), b.u32(TILE), GROUP, |at| {
            let (row, column) = if self.across {
                (at & (rows - 1), at >> rows.ilog2())
            } else {
                (at >> self.padded.ilog2(), at & (self.padded - 1))
            };
            body(Element { row: group * rows + row.cast(index), base: row * self.padded, column });
        });
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "sort_tile"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let &Spec { dtype, padded, .. } = self;
        let (index, o) = (self.layout.index, &p.operands);
        let scalar = key::dtype_of(dtype).compute();
        let (keys, shared_positions) = (b.shared(scalar, 1, TILE), b.shared(ScalarType::U32, 1, TILE));
        self.each(b, |Element { row, base, column }| {
            keys.store(base + column, u64::MAX);
            shared_positions.store(base + column, u32::MAX);
            b.if_(row.lt(o.rows) & column.lt(p.n), || {
                let position =
                    p.positions.map_or(column, |positions| positions.load(row * p.n.cast(index) + column.cast(index)));
                let x = o.input.load(o.at(0, o.offsets(b, row)[0], position));
                keys.store(base + column, key::of_bits(x, dtype, self.descending));
                shared_positions.store(base + column, position);
            });
        });
        network(b, keys, shared_positions, padded, TILE);
        self.each(b, |Element { row, base, column }| {
            b.if_(row.lt(o.rows) & column.lt(p.n), || {
                let first = match self.take_kind {
                    TakeKind::Ranks => p.first,
                    TakeKind::Median { ignore_nan } => {
                        median_rank(dtype, ignore_nan, p.n, |i| keys.load(base + i).lt(key::largest(dtype)))
                    }
                };
                b.if_(column.ge(first) & (column - first).lt(p.count), || {
                    let (position, offsets) = (shared_positions.load(base + column), o.offsets(b, row));
                    o.values.store(o.at(1, offsets[1], column - first), o.input.load(o.at(0, offsets[0], position)));
                    o.indices.store(o.at(2, offsets[2], column - first), position);
                });
            });
        });
    }
}

/// The index of the median in a sorted row of `n` keys: the lower of the two middle ones, or the
/// first NaN, unless NaN is ignored. `number` returns whether the key at an index is not NaN's.
pub fn median_rank<'b>(
    dtype: DType,
    ignore_nan: bool,
    n: Value<'b>,
    number: impl FnOnce(Value<'b>) -> Value<'b>,
) -> Value<'b> {
    let middle = |n: Value<'b>| (n.max(1) - 1) >> 1;
    if !dtype.is_float() {
        return middle(n);
    }
    let numbers = key::partition_point(n, number);
    if ignore_nan { middle(numbers) } else { numbers.lt(n).select(numbers, middle(n)) }
}

/// Sorts every `padded` consecutive of the `tile` elements, ascending.
pub fn network<'b>(b: &'b Builder, keys: Shared<'b>, positions: Shared<'b>, padded: u32, tile: u32) {
    let block = b.var(b.u32(1));
    b.while_(
        || block.get().le(padded.ilog2()),
        || {
            let half = b.var(block.get());
            b.while_(
                || half.get().gt(0),
                || {
                    let shift = half.get() - 1;
                    b.barrier();
                    b.for_(b.local_id(0), b.u32(tile / 2), GROUP, |pair| {
                        let low = ((pair >> shift) << half.get()) | (pair & ((b.u32(1) << shift) - 1));
                        let high = low | (b.u32(1) << shift);
                        let ascending = ((low & (padded - 1)) >> block.get() & 1).eq(0);
                        let (x, y) = (keys.load(low), keys.load(high));
                        let (p, q) = (positions.load(low), positions.load(high));
                        let after = x.gt(y) | (x.eq(y) & p.gt(q));
                        b.if_((after & ascending) | (!after & !ascending), || {
                            keys.store(low, y);
                            keys.store(high, x);
                            positions.store(low, q);
                            positions.store(high, p);
                        });
                    });
                    half.set(shift);
                },
            );
            block.set(block.get() + 1);
        },
    );
    b.barrier();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let all = [TakeKind::Ranks, TakeKind::Median { ignore_nan: false }, TakeKind::Median { ignore_nan: true }];
        for (i, dtype) in [DType::Bool, DType::F16, DType::I32, DType::F64].into_iter().enumerate() {
            for take_kind in all {
                let across = i == 0;
                let index = if i % 2 == 0 { ScalarType::U32 } else { ScalarType::U64 };
                let padded = if across { 2 } else { 128 };
                let (descending, indirect) = (i == 1, i == 2);
                let layout = LayoutSpec { rank: i as u32, operands: 3, index };
                accepted(&Spec { dtype, descending, take_kind, padded, across, indirect, layout }.build());
            }
        }
    }
}
