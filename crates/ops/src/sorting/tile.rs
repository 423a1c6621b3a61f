//! Short rows, sorted in workgroup memory: a bitonic network on pairs of key and position (K. Batcher, "Sorting networks
//! and their applications", 1968). The position breaks ties, which makes the order that of a stable sort.

use super::key;
use super::operands::{Operands, Params, Take};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::GROUP;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar, Shared, Value};

/// The longest row.
pub const LONGEST: i64 = 2048;
/// A workgroup sorts at least this many elements: several rows if they are shorter.
const LEAST: u32 = 512;

struct Shape {
    dtype: DType,
    descending: bool,
    take: Take,
    /// Elements of a row and of a workgroup, powers of two.
    padded: u32,
    tile: u32,
    /// Neighbouring invocations load from neighbouring rows.
    across: bool,
    /// Elements are found through positions.
    indirect: bool,
    rank: usize,
    index: Scalar,
}

impl Shape {
    fn key(&self) -> [u32; 6] {
        let flags = [self.descending, self.across, self.indirect].iter().fold(0, |f, &x| f << 1 | u32::from(x));
        [self.dtype as u32, flags, self.take.code(), self.padded, self.rank as u32, self.index.bytes()]
    }
}

/// Sorts rows of at most [`LONGEST`] elements and writes what `take` says. With `positions` (u32, `[rows, n]`), a row's
/// elements are those at the positions.
pub fn run(call: &Call, o: &Operands, positions: Option<&Tensor>, n: i64, descending: bool, take: Take) -> Result<()> {
    let padded = (n as u32).next_power_of_two().max(2);
    let tile = padded.max(LEAST);
    let shape = Shape {
        dtype: o.tensors[0].dtype,
        descending,
        take,
        padded,
        tile,
        across: o.across() && padded < tile,
        indirect: positions.is_some(),
        rank: o.layout.rank(),
        index: o.layout.index,
    };
    let kernel = call.kernel("sort_tile", shape.key(), || build(&shape))?;
    let [input, values, indices] = &o.tensors;
    let mut launcher = call.launch(kernel).read(input).write(values).write(indices);
    if let Some(positions) = positions {
        launcher = launcher.read(positions);
    }
    let (first, count) = take.window();
    let groups = (o.rows as u64).div_ceil(u64::from(tile / padded));
    o.pass(launcher.u32(n as u32).u32(first).u32(count)).threads(groups * u64::from(GROUP))
}

fn build(shape: &Shape) -> Kernel {
    let b = Builder::new("sort_tile", [GROUP, 1, 1]);
    write(&b, shape);
    b.finish()
}

/// An element of the workgroup's tile: the row in the tensor, its first place in the tile, and the place in the row.
struct Element<'b> {
    row: Value<'b>,
    base: Value<'b>,
    column: Value<'b>,
}

impl Shape {
    /// Runs `body` for this invocation's elements.
    fn each<'b>(&self, b: &'b Builder, body: impl FnOnce(Element<'b>)) {
        let rows = self.tile / self.padded;
        let index = self.index;
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

fn write(b: &Builder, shape: &Shape) {
    let &Shape { dtype, padded, tile, index, .. } = shape;
    let raw = dtype.bits();
    let (input, values) = (b.pointer("input", raw), b.pointer("values", raw));
    let indices = b.pointer("indices", DType::I64);
    let positions = if shape.indirect { Some(b.pointer("positions", DType::U32)) } else { None };
    let [n, first, count] = ["n", "first", "count"].map(|name| b.param(name, Scalar::U32));
    let params = Params::declare(b, shape.rank, index);
    let scalar = key::dtype_of(dtype).compute();
    let (keys, places) = (b.shared(scalar, 1, tile), b.shared(Scalar::U32, 1, tile));
    shape.each(b, |Element { row, base, column }| {
        keys.store(base + column, u64::MAX);
        places.store(base + column, u32::MAX);
        b.if_(row.lt(params.rows) & column.lt(n), || {
            let place = positions.map_or(column, |p| p.load(row * n.cast(index) + column.cast(index)));
            let x = input.load(params.at(0, params.offsets(b, row)[0], place));
            keys.store(base + column, key::of_bits(x, dtype, shape.descending));
            places.store(base + column, place);
        });
    });
    network(b, keys, places, padded, tile);
    shape.each(b, |Element { row, base, column }| {
        b.if_(row.lt(params.rows) & column.lt(n), || {
            let first = match shape.take {
                Take::First(_) | Take::Rank(_) => first,
                Take::Median { ignore_nan } => median(dtype, ignore_nan, n, |i| keys.load(base + i)),
            };
            b.if_(column.ge(first) & (column - first).lt(count), || {
                let (place, offsets) = (places.load(base + column), params.offsets(b, row));
                values.store(params.at(1, offsets[1], column - first), input.load(params.at(0, offsets[0], place)));
                indices.store(params.at(2, offsets[2], column - first), place);
            });
        });
    });
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
        let takes =
            [Take::First(1), Take::Rank(0), Take::Median { ignore_nan: false }, Take::Median { ignore_nan: true }];
        for (i, dtype) in [DType::Bool, DType::F16, DType::I32, DType::F64].into_iter().enumerate() {
            for take in takes {
                let across = i == 0;
                let index = if i % 2 == 0 { Scalar::U32 } else { Scalar::U64 };
                let padded = if across { 2 } else { 2048 };
                let tile = padded.max(LEAST);
                let (descending, indirect) = (i == 1, i == 2);
                accepted(&build(&Shape { dtype, descending, take, padded, tile, across, indirect, rank: i, index }));
            }
        }
    }
}
