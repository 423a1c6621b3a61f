//! The kernel that makes the columns of two blocks orthogonal to each other, in terms of their
//! products.
//!
//! A workgroup takes a pair of blocks. It computes the products of their columns, finds with
//! Jacobi's method in shared memory the rotation that makes these a diagonal, and writes it for
//! [`rotate_columns`](super::rotate_columns) to apply. The larger column of two comes first, by
//! which sweeps become fewer (de Rijk, "A one-sided Jacobi algorithm for computing the singular
//! value decomposition on a vector computer", 1989).

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::jacobi::{Phase, Rotation, mirrored, pair, turned};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{InDType, KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value, math};

/// Most columns of a pair of blocks. Two squares of so many numbers are in shared memory, of which
/// some adapters have 16 KiB.
pub const fn columns(dtype: DType) -> u32 {
    if dtype.is_complex() { 16 } else { 32 }
}

/// Invocations of a workgroup.
const THREADS: u32 = 128;

/// Where blocks are: the two of a pair, and the width of each.
#[derive(Copy, Clone)]
pub struct Blocks<'b> {
    /// The first and the second one; the second may be beyond the last column.
    pub pair: (Value<'b>, Value<'b>),
    /// Columns of a block, u32.
    pub width: Value<'b>,
    /// Columns of a matrix, u32.
    pub n: Value<'b>,
}

impl<'b> Blocks<'b> {
    /// The matrix's column that is column `c` of the pair; `n` or more where there is none.
    pub fn column(&self, c: Value<'b>) -> Value<'b> {
        let (x, y) = self.pair;
        let second = c.ge(self.width * 2).select(self.n, y * self.width + c - self.width);
        c.lt(self.width).select(x * self.width + c, second)
    }

    /// Where an element of the rotation of the `slot`-th pair is.
    pub fn number(&self, slot: Value<'b>, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        let size = self.width * 2;
        slot * (size * size).cast(slot.scalar()) + (row * size + column).cast(slot.scalar())
    }

    /// Where a column's place in it is.
    pub fn place(&self, slot: Value<'b>, column: Value<'b>) -> Value<'b> {
        slot * (self.width * 2).cast(slot.scalar()) + column.cast(slot.scalar())
    }
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockPair {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub BlockPair as s => BlockPairArguments, BlockPairParameters {
        /// `[batch, rows, n]`
        x: InputElements = s.dtype,
        strides: MatrixStrides = s.index,
        /// For every matrix and pair `Q - P`, as large as two blocks are wide: Q is the rotation, P
        /// a permutation that it is close to.
        turns: OutputElements = s.dtype,
        /// For every matrix, pair and column of P, which row of it the one is in.
        places: Output = DType::I32,
        /// For every matrix and pair whether there is anything to rotate.
        rotated: Output = DType::I32,
        /// Becomes 1 where two columns are further from orthogonal than `counted`.
        left: Output = DType::I32,
        batch: U32,
        rows: U32,
        n: U32,
        /// Columns of a block, and blocks.
        width: U32,
        blocks: U32,
        round: U32,
        /// The cosine from which on two columns are rotated.
        least: InDType = s.dtype.real(),
        /// The cosine from which on the work is not done.
        counted: InDType = s.dtype.real(),
        /// Columns no longer than this count as zeros.
        negligible: InDType = s.dtype.real(),
        /// Most sweeps over a pair's columns.
        sweeps: U32,
        /// Not 0: longer columns come first.
        ordered: U32,
    }
}

impl KernelSpec for BlockPair {
    fn name(&self) -> &'static str {
        "jacobi_block_pair"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BlockPairParameters<'b>) {
        let (dtype, compute) = (self.dtype, self.dtype.compute());
        let most = columns(dtype);
        // Products of an invocation, of one column with as many that stand one after another.
        let each = most * most / THREADS;
        // From one column to the next in shared memory: neighbours in different banks.
        let pitch = most + 1;
        let pairs = (p.blocks + 1) / 2;
        let (matrix, own) = matrices::own_tile(b, p.batch, pairs);
        let slot = (matrix * pairs + own).cast(self.index);
        let local = b.local_id(0);
        let (line, first) = (local / (most / each), local % (most / each) * each);
        let zero = b.float(compute, 0.0);
        let nothing = Element::of_real(dtype, zero);
        let players = p.width * 2;
        let blocks = Blocks { pair: pair(p.blocks, p.round, own), width: p.width, n: p.n };
        let [gram, turns] = [(); 2].map(|()| SharedElements::shared(b, dtype, most * pitch));
        let [roots, places] = [b.shared(compute, 1, most), b.shared(ScalarType::U32, 1, most)];
        let at = |row: Value<'b>, column: Value<'b>| row * pitch + column;

        // The products, of some rows after another in shared memory.
        let [totals, sums]: [Vec<ElementVar>; 2] =
            [(); 2].map(|()| (0..each).map(|_| ElementVar::var(b, nothing)).collect());
        b.for_(0, p.rows, most, |top| {
            b.barrier();
            for e in 0..each {
                let element = local + e * THREADS;
                let (column, row) = (element / most, element % most);
                let (from, value) = (blocks.column(column), ElementVar::var(b, nothing));
                b.if_(from.lt(p.n) & (top + row).lt(p.rows), || {
                    value.set(p.x.load(p.strides.at(matrix, top + row, from)));
                });
                turns.store(at(column, row), value.get());
            }
            b.barrier();
            sums.iter().for_each(|sum| sum.set(nothing));
            b.for_(0, b.u32(most), 1, |row| {
                let x = turns.load(at(line, row)).conjugate();
                for e in 0..each {
                    let sum = sums[e as usize];
                    sum.set(sum.get() + x * turns.load(at(first + e, row)));
                }
            });
            totals.iter().zip(&sums).for_each(|(total, sum)| total.set(total.get() + sum.get()));
        });
        b.barrier();
        for e in 0..each {
            gram.store(at(line, first + e), totals[e as usize].get());
            turns.store(at(line, first + e), nothing);
        }
        b.if_(local.lt(most), || places.store(local, local));

        let root = |square: Value<'b>| math::sqrt(square.is_above_zero().select(square, zero));
        let beyond = |product: Element<'b>, (x, y): (Value<'b>, Value<'b>), cosine: Value<'b>| {
            x.gt(p.negligible) & y.gt(p.negligible) & product.abs().gt(cosine * x * y)
        };
        // Whether there are columns to rotate, and whether there are some that count.
        let flags = b.shared(ScalarType::U32, 1, 2);
        let measure = || {
            b.barrier();
            b.if_(local.lt(most), || roots.store(local, root(gram.load(at(local, local)).real())));
            b.if_(local.lt(2), || flags.store(local, 0));
            b.barrier();
            for e in 0..each {
                let column = first + e;
                b.if_(column.lt(line), || {
                    let (product, lengths) = (gram.load(at(line, column)), (roots.load(line), roots.load(column)));
                    for (flag, cosine) in [(0, p.least), (1, p.counted)] {
                        b.if_(beyond(product, lengths, cosine), || {
                            flags.atomic(Atomic::Max, flag, 1);
                        });
                    }
                });
            }
            b.barrier();
        };
        measure();
        let some = flags.load(0);
        b.if_(local.eq(0), || {
            p.rotated.store(slot, some.cast(ScalarType::I32));
            b.if_(flags.load(1).ne(0), || p.left.store(0, 1));
        });

        // The rotations of a round: sine, half tangent, the new squares, and whether the two
        // columns are exchanged.
        let kept: [_; 4] = std::array::from_fn(|_| b.shared(compute, 1, most / 2));
        let phases = Phases(dtype.is_complex().then(|| SharedElements::shared(b, dtype, most / 2)));
        let exchanged = b.shared(ScalarType::U32, 1, most / 2);
        let (going, sweep) = (b.var(some), b.var(b.u32(0)));
        b.while_(
            || going.get().ne(0) & sweep.get().lt(p.sweeps),
            || {
                b.for_(0, players - 1, 1, |round| {
                    b.if_(local.lt(p.width), || {
                        let (x, y) = pair(players, round, local);
                        let (xx, yy, product) = (gram.load(at(x, x)), gram.load(at(y, y)), gram.load(at(y, x)));
                        let (xx, yy) = (xx.real(), yy.real());
                        let (phase, size) = Phase::apart(product);
                        let rotates = beyond(Element::Real(size), (root(xx), root(yy)), p.least);
                        let rotation = Rotation::of(xx, yy, rotates.select(size, zero));
                        let change = rotation.tangent * rotates.select(size, zero);
                        let (xx, yy) = (xx - change, yy + change);
                        let exchange = p.ordered.ne(0) & xx.lt(yy) & yy.is_above_zero();
                        let squares = (exchange.select(yy, xx), exchange.select(xx, yy));
                        let values = [rotation.sine, rotation.half_tangent, squares.0, squares.1];
                        kept.iter().zip(values).for_each(|(to, value)| to.store(local, value));
                        phases.store(local, phase);
                        exchanged.store(local, exchange.cast(ScalarType::U32));
                        let product = match product {
                            Element::Real(_) => product,
                            Element::Complex(_) => Element::select(exchange, product.conjugate(), product),
                        };
                        gram.store(at(y, x), Element::select(rotates, nothing, product));
                        b.if_(exchange, || {
                            let (from_x, from_y) = (places.load(x), places.load(y));
                            places.store(x, from_y);
                            places.store(y, from_x);
                        });
                    });
                    b.barrier();
                    // What turns two numbers of a row, and puts them where they go.
                    let turn = |i: Value<'b>, phase: Phase<'b>, (x, y): (Element<'b>, Element<'b>)| {
                        let (x, y) = turned((kept[0].load(i), kept[1].load(i)), phase, x, y);
                        let exchange = exchanged.load(i).ne(0);
                        (Element::select(exchange, y, x), Element::select(exchange, x, y))
                    };
                    b.for_(local, p.width * p.width, THREADS, |e| {
                        let (i, j) = (e / p.width, e % p.width);
                        let (rows, columns) = (pair(players, round, i), pair(players, round, j));
                        b.if_(i.eq(j), || {
                            gram.store(at(rows.0, rows.0), Element::of_real(dtype, kept[2].load(i)));
                            gram.store(at(rows.1, rows.1), Element::of_real(dtype, kept[3].load(i)));
                        });
                        b.if_(i.lt(j), || {
                            let lower = |x: Value<'b>, y: Value<'b>| at(x.max(y), x.min(y));
                            let element = |x: Value<'b>, y: Value<'b>| mirrored(x, y, gram.load(lower(x, y)));
                            let row = |x: Value<'b>| [columns.0, columns.1].map(|y| element(x, y));
                            let ([xx, xy], [yx, yy]) = (row(rows.0), row(rows.1));
                            let (of_rows, of_columns) = (phases.load(i).conjugate(), phases.load(j));
                            let ((xx, xy), (yx, yy)) = (turn(j, of_columns, (xx, xy)), turn(j, of_columns, (yx, yy)));
                            let ((xx, yx), (xy, yy)) = (turn(i, of_rows, (xx, yx)), turn(i, of_rows, (xy, yy)));
                            for (x, y, value) in [
                                (rows.0, columns.0, xx),
                                (rows.0, columns.1, xy),
                                (rows.1, columns.0, yx),
                                (rows.1, columns.1, yy),
                            ] {
                                gram.store(lower(x, y), mirrored(x, y, value));
                            }
                        });
                    });
                    // The rotation itself is only kept less its permutation, so that a small one
                    // adds something small.
                    b.for_(local, p.width * players, THREADS, |e| {
                        let (i, row) = (e / players, e % players);
                        let (x, y) = pair(players, round, i);
                        let exchange = exchanged.load(i).ne(0);
                        let one =
                            |column: Value<'b>| Element::of_real(dtype, places.load(column).eq(row).cast(compute));
                        let (one_x, one_y) = (one(exchange.select(y, x)), one(exchange.select(x, y)));
                        let (less_x, less_y) = (turns.load(at(row, x)), turns.load(at(row, y)));
                        let (whole_x, whole_y) = (less_x + one_x, less_y + one_y);
                        let (sine, half) = (kept[0].load(i), kept[1].load(i));
                        let phase = phases.load(i);
                        let (over_x, over_y) = (phase.of(whole_y), phase.conjugate().of(whole_x));
                        let less_x = less_x - (over_x + whole_x.times(half)).times(sine);
                        let less_y = less_y + (over_y - whole_y.times(half)).times(sine);
                        turns.store(at(row, x), Element::select(exchange, less_y, less_x));
                        turns.store(at(row, y), Element::select(exchange, less_x, less_y));
                    });
                    b.barrier();
                });
                sweep.set(sweep.get() + 1);
                measure();
                going.set(flags.load(0));
            },
        );
        b.if_(some.ne(0) & line.lt(players), || {
            for e in 0..each {
                let column = first + e;
                b.if_(column.lt(players), || {
                    p.turns.store(blocks.number(slot, line, column), turns.load(at(line, column)))
                });
            }
        });
        b.if_(some.ne(0) & local.lt(players), || {
            p.places.store(blocks.place(slot, local), places.load(local).cast(ScalarType::I32));
        });
    }
}

/// The phases of a round's pairs, which real matrices do not have.
struct Phases<'b>(Option<SharedElements<'b>>);

impl<'b> Phases<'b> {
    fn store(&self, i: Value<'b>, phase: Phase<'b>) {
        if let (Some(phases), Phase(Some(phase))) = (self.0, phase) {
            phases.store(i, phase);
        }
    }

    fn load(&self, i: Value<'b>) -> Phase<'b> {
        Phase(self.0.map(|phases| phases.load(i)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::C64] {
            accepted(&BlockPair { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&BlockPair { dtype, index: ScalarType::U64 }.build());
        }
    }
}
