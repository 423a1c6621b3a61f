//! The kernel that makes the columns of two blocks orthogonal to each other, in terms of their Gram
//! matrix.
//!
//! A workgroup processes a pair of blocks. It computes the inner products of their columns, finds
//! the rotation that diagonalises them with Jacobi's method in shared memory, and writes it for
//! [`rotate_columns`](super::rotate_columns) to apply. The longer column of a pair comes first,
//! which reduces the number of sweeps (de Rijk, "A one-sided Jacobi algorithm for computing the
//! singular value decomposition on a vector computer", 1989).

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::jacobi::{Rotation, UnitPhase, mirrored, pair, rotated};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{InDType, KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value, math};

/// Maximum columns of a pair of blocks. Two square matrices of this size are in shared memory,
/// which has only 16 KiB on some adapters.
pub const fn columns(dtype: DType) -> u32 {
    if dtype.is_complex() { 16 } else { 32 }
}

/// Invocations of a workgroup.
const THREADS: u32 = 128;

/// The two blocks of a pair.
#[derive(Copy, Clone)]
pub struct Blocks<'b> {
    /// Index of the first and of the second block; the second may be beyond the last column.
    pub pair: (Value<'b>, Value<'b>),
    /// Columns of a block (u32).
    pub width: Value<'b>,
    /// Columns of a matrix (u32).
    pub n: Value<'b>,
}

impl<'b> Blocks<'b> {
    /// The matrix's column that is column `c` of the pair; `n` or more if there is none.
    pub fn column(&self, c: Value<'b>) -> Value<'b> {
        let (x, y) = self.pair;
        let second = c.ge(self.width * 2).select(self.n, y * self.width + c - self.width);
        c.lt(self.width).select(x * self.width + c, second)
    }

    /// Offset of an element of the rotation of pair `slot`.
    pub fn number(&self, slot: Value<'b>, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        let size = self.width * 2;
        slot * (size * size).cast(slot.scalar()) + (row * size + column).cast(slot.scalar())
    }

    /// Offset of a column's entry in the permutation of pair `slot`.
    pub fn permutation_offset(&self, slot: Value<'b>, column: Value<'b>) -> Value<'b> {
        slot * (self.width * 2).cast(slot.scalar()) + column.cast(slot.scalar())
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockPair {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub BlockPair as s => BlockPairArguments, BlockPairParameters {
        /// `[batch, rows, n]`
        x: InputElements = s.dtype,
        strides: MatrixStrides = s.index,
        /// For every matrix and pair the square matrix `Q - P` of the size of two blocks: Q is the
        /// rotation, and P a permutation close to it.
        rotations: OutputElements = s.dtype,
        /// For every matrix and pair the permutation P: the row of the one in each column.
        permutation: Output = DType::I32,
        /// For every matrix and pair whether there is a rotation.
        rotated: Output = DType::I32,
        /// Set to 1 if two columns are further from orthogonal than `counted`.
        left: Output = DType::I32,
        batch: U32,
        rows: U32,
        n: U32,
        /// Columns of a block, and number of blocks.
        width: U32,
        blocks: U32,
        round: U32,
        /// Two columns are rotated if the cosine of their angle is larger.
        least: InDType = s.dtype.real(),
        /// The decomposition has not converged if the cosine of two columns is larger.
        counted: InDType = s.dtype.real(),
        /// Columns up to this length count as zeros.
        negligible: InDType = s.dtype.real(),
        /// Maximum number of sweeps over a pair's columns.
        sweeps: U32,
        /// Not 0 if longer columns come first.
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
        // Inner products of an invocation: of one column with several adjacent ones.
        let each = most * most / THREADS;
        // Leading dimension in shared memory: adjacent columns are in different banks.
        let pitch = most + 1;
        let pairs = (p.blocks + 1) / 2;
        let (matrix, own) = matrices::workgroup_tile(b, p.batch, pairs);
        let slot = (matrix * pairs + own).cast(self.index);
        let local = b.local_id(0);
        let (line, first) = (local / (most / each), local % (most / each) * each);
        let zero = b.float(compute, 0.0);
        let nothing = Element::of_real(dtype, zero);
        let players = p.width * 2;
        let blocks = Blocks { pair: pair(p.blocks, p.round, own), width: p.width, n: p.n };
        let [gram, rotations] = [(); 2].map(|()| SharedElements::shared(b, dtype, most * pitch));
        let [roots, permutation] = [b.shared(compute, 1, most), b.shared(ScalarType::U32, 1, most)];
        let at = |row: Value<'b>, column: Value<'b>| row * pitch + column;

        // The inner products, over chunks of rows that are staged in shared memory.
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
                rotations.store(at(column, row), value.get());
            }
            b.barrier();
            sums.iter().for_each(|sum| sum.set(nothing));
            b.for_(0, b.u32(most), 1, |row| {
                let x = rotations.load(at(line, row)).conjugate();
                for e in 0..each {
                    let sum = sums[e as usize];
                    sum.set(sum.get() + x * rotations.load(at(first + e, row)));
                }
            });
            totals.iter().zip(&sums).for_each(|(total, sum)| total.set(total.get() + sum.get()));
        });
        b.barrier();
        for e in 0..each {
            gram.store(at(line, first + e), totals[e as usize].get());
            rotations.store(at(line, first + e), nothing);
        }
        b.if_(local.lt(most), || permutation.store(local, local));

        let root = |square: Value<'b>| math::sqrt(square.is_above_zero().select(square, zero));
        let beyond = |product: Element<'b>, (x, y): (Value<'b>, Value<'b>), cosine: Value<'b>| {
            x.gt(p.negligible) & y.gt(p.negligible) & product.abs().gt(cosine * x * y)
        };
        // Flags: whether there are columns to rotate, and whether there are columns that have not
        // converged.
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

        // The rotations of a round: sine, half tangent, the new squared norms, and whether the two
        // columns are exchanged.
        let rotation_values: [_; 4] = std::array::from_fn(|_| b.shared(compute, 1, most / 2));
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
                        let (phase, size) = UnitPhase::split(product);
                        let rotates = beyond(Element::Real(size), (root(xx), root(yy)), p.least);
                        let rotation = Rotation::of(xx, yy, rotates.select(size, zero));
                        let change = rotation.tangent * rotates.select(size, zero);
                        let (xx, yy) = (xx - change, yy + change);
                        let exchange = p.ordered.ne(0) & xx.lt(yy) & yy.is_above_zero();
                        let squares = (exchange.select(yy, xx), exchange.select(xx, yy));
                        let values = [rotation.sine, rotation.half_tangent, squares.0, squares.1];
                        rotation_values.iter().zip(values).for_each(|(to, value)| to.store(local, value));
                        phases.store(local, phase);
                        exchanged.store(local, exchange.cast(ScalarType::U32));
                        let product = match product {
                            Element::Real(_) => product,
                            Element::Complex(_) => Element::select(exchange, product.conjugate(), product),
                        };
                        gram.store(at(y, x), Element::select(rotates, nothing, product));
                        b.if_(exchange, || {
                            let (from_x, from_y) = (permutation.load(x), permutation.load(y));
                            permutation.store(x, from_y);
                            permutation.store(y, from_x);
                        });
                    });
                    b.barrier();
                    // Rotates two numbers of a row, and exchanges them if their columns are.
                    let turn = |i: Value<'b>, phase: UnitPhase<'b>, (x, y): (Element<'b>, Element<'b>)| {
                        let (x, y) = rotated((rotation_values[0].load(i), rotation_values[1].load(i)), phase, x, y);
                        let exchange = exchanged.load(i).ne(0);
                        (Element::select(exchange, y, x), Element::select(exchange, x, y))
                    };
                    b.for_(local, p.width * p.width, THREADS, |e| {
                        let (i, j) = (e / p.width, e % p.width);
                        let (rows, columns) = (pair(players, round, i), pair(players, round, j));
                        b.if_(i.eq(j), || {
                            gram.store(at(rows.0, rows.0), Element::of_real(dtype, rotation_values[2].load(i)));
                            gram.store(at(rows.1, rows.1), Element::of_real(dtype, rotation_values[3].load(i)));
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
                    // The rotation is stored minus its permutation, so that a small rotation is a
                    // small number to add, which is rounded little.
                    b.for_(local, p.width * players, THREADS, |e| {
                        let (i, row) = (e / players, e % players);
                        let (x, y) = pair(players, round, i);
                        let exchange = exchanged.load(i).ne(0);
                        let one =
                            |column: Value<'b>| Element::of_real(dtype, permutation.load(column).eq(row).cast(compute));
                        let (one_x, one_y) = (one(exchange.select(y, x)), one(exchange.select(x, y)));
                        let (less_x, less_y) = (rotations.load(at(row, x)), rotations.load(at(row, y)));
                        let (whole_x, whole_y) = (less_x + one_x, less_y + one_y);
                        let (sine, half) = (rotation_values[0].load(i), rotation_values[1].load(i));
                        let phase = phases.load(i);
                        let (over_x, over_y) = (phase.of(whole_y), phase.conjugate().of(whole_x));
                        let less_x = less_x - (over_x + whole_x.times(half)).times(sine);
                        let less_y = less_y + (over_y - whole_y.times(half)).times(sine);
                        rotations.store(at(row, x), Element::select(exchange, less_y, less_x));
                        rotations.store(at(row, y), Element::select(exchange, less_x, less_y));
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
                    p.rotations.store(blocks.number(slot, line, column), rotations.load(at(line, column)))
                });
            }
        });
        b.if_(some.ne(0) & local.lt(players), || {
            p.permutation.store(blocks.permutation_offset(slot, local), permutation.load(local).cast(ScalarType::I32));
        });
    }
}

/// The phases of a round's pairs; real matrices have none.
struct Phases<'b>(Option<SharedElements<'b>>);

impl<'b> Phases<'b> {
    fn store(&self, i: Value<'b>, phase: UnitPhase<'b>) {
        if let (Some(phases), UnitPhase(Some(phase))) = (self.0, phase) {
            phases.store(i, phase);
        }
    }

    fn load(&self, i: Value<'b>) -> UnitPhase<'b> {
        UnitPhase(self.0.map(|phases| phases.load(i)))
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
