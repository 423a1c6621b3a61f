//! Short rows, sorted in workgroup memory: a bitonic network on pairs of key and position (K. Batcher, "Sorting networks
//! and their applications", 1968). The position breaks ties, which makes the order that of a stable sort.

use super::key;
use super::operands::{Operands, RowOperands, Take, Taken};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::tensor::Tensor;
use crate::tensor::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, ScalarType, Shared, Value};

/// The longest row.
const MAX_ROW: u32 = 2048;
/// A workgroup sorts at least this many elements: several rows if they are shorter.
const MIN_TILE: u32 = 512;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    descending: bool,
    taken: Taken,
    /// Elements of a row and of a workgroup, powers of two.
    padded: u32,
    tile: u32,
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

/// The longest row of a dtype that fits into the adapter's shared memory, with its elements' places.
pub fn max_row(call: &Call, dtype: DType) -> i64 {
    let element = key::dtype_of(dtype).bytes() as u32 + 4;
    let fits = |row: u32| row * element <= call.device.info().capabilities.max_shared_memory;
    i64::from(if fits(MAX_ROW) { MAX_ROW } else { MAX_ROW / 2 })
}

/// Sorts rows of at most [`max_row`] elements and writes what `take` says. With `positions` (u32, `[rows, n]`), a row's
/// elements are those at the positions.
pub fn run(call: &Call, o: &Operands, positions: Option<&Tensor>, n: i64, descending: bool, take: Take) -> Result<()> {
    let padded = (n as u32).next_power_of_two().max(2);
    let tile = padded.max(MIN_TILE);
    let spec = Spec {
        dtype: o.tensors[0].dtype,
        descending,
        taken: take.kind(),
        padded,
        tile,
        across: o.across() && padded < tile,
        indirect: positions.is_some(),
        layout: o.layout.spec(),
    };
    let (first, count) = take.window();
    let groups = (o.rows as u64).div_ceil(u64::from(tile / padded));
    call.run(&spec, &Arguments { operands: o, positions, n: n as u32, first, count }, dense::folded(groups))
}

/// An element of the workgroup's tile: the row in the tensor, its first place in the tile, and the place in the row.
struct Element<'b> {
    row: Value<'b>,
    base: Value<'b>,
    column: Value<'b>,
}

impl Spec {
    /// Runs `body` for this invocation's elements.
    fn each<'b>(&self, b: &'b Builder, body: impl FnOnce(Element<'b>)) {
        let rows = self.tile / self.padded;
        let index = self.layout.index;
        let group = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        b.for_(b.local_id(0), b.u32(self.tile), GROUP, |at| {
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
        let &Spec { dtype, padded, tile, .. } = self;
        let (index, o) = (self.layout.index, &p.operands);
        let scalar = key::dtype_of(dtype).compute();
        let (keys, places) = (b.shared(scalar, 1, tile), b.shared(ScalarType::U32, 1, tile));
        self.each(b, |Element { row, base, column }| {
            keys.store(base + column, u64::MAX);
            places.store(base + column, u32::MAX);
            b.if_(row.lt(o.rows) & column.lt(p.n), || {
                let place =
                    p.positions.map_or(column, |positions| positions.load(row * p.n.cast(index) + column.cast(index)));
                let x = o.input.load(o.at(0, o.offsets(b, row)[0], place));
                keys.store(base + column, key::of_bits(x, dtype, self.descending));
                places.store(base + column, place);
            });
        });
        network(b, keys, places, padded, tile);
        self.each(b, |Element { row, base, column }| {
            b.if_(row.lt(o.rows) & column.lt(p.n), || {
                let first = match self.taken {
                    Taken::Ranks => p.first,
                    Taken::Median { ignore_nan } => median(dtype, ignore_nan, p.n, |i| keys.load(base + i)),
                };
                b.if_(column.ge(first) & (column - first).lt(p.count), || {
                    let (place, offsets) = (places.load(base + column), o.offsets(b, row));
                    o.values.store(o.at(1, offsets[1], column - first), o.input.load(o.at(0, offsets[0], place)));
                    o.indices.store(o.at(2, offsets[2], column - first), place);
                });
            });
        });
    }
}

/// Where the median of a sorted row of `n` keys is: the lower of the two middle ones; or the first NaN, unless they are
/// ignored.
fn median<'b>(dtype: DType, ignore_nan: bool, n: Value<'b>, load: impl FnOnce(Value<'b>) -> Value<'b>) -> Value<'b> {
    let middle = |n: Value<'b>| (n.max(1) - 1) >> 1;
    if !dtype.is_float() {
        return middle(n);
    }
    let numbers = key::partition_point(n, |i| load(i).lt(key::largest(dtype)));
    if ignore_nan { middle(numbers) } else { numbers.lt(n).select(numbers, middle(n)) }
}

/// Sorts every `padded` neighbours of the `tile`, ascending.
fn network<'b>(b: &'b Builder, keys: Shared<'b>, places: Shared<'b>, padded: u32, tile: u32) {
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
                        let (p, q) = (places.load(low), places.load(high));
                        let after = x.gt(y) | (x.eq(y) & p.gt(q));
                        b.if_((after & ascending) | (!after & !ascending), || {
                            keys.store(low, y);
                            keys.store(high, x);
                            places.store(low, q);
                            places.store(high, p);
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
        let all = [Taken::Ranks, Taken::Median { ignore_nan: false }, Taken::Median { ignore_nan: true }];
        for (i, dtype) in [DType::Bool, DType::F16, DType::I32, DType::F64].into_iter().enumerate() {
            for taken in all {
                let across = i == 0;
                let index = if i % 2 == 0 { ScalarType::U32 } else { ScalarType::U64 };
                let padded = if across { 2 } else { 2048 };
                let tile = padded.max(MIN_TILE);
                let (descending, indirect) = (i == 1, i == 2);
                let layout = LayoutSpec { rank: i as u32, operands: 3, index };
                accepted(&Spec { dtype, descending, taken, padded, tile, across, indirect, layout }.build());
            }
        }
    }
}
