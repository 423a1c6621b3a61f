//! Kernels that solve with Bunch and Kaufman's decomposition. LAPACK does not apply later row
//! exchanges to earlier columns of L, so they are applied first.

use crate::linear_algebra::element::{Element, InputElements, OutputElements};
use crate::linear_algebra::jacobi::UnitPhase;
use crate::linear_algebra::matrices::MatrixStrides;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Kinds of rows, in `kinds`: a pivot of size one, or the first or second row of a block of size
/// two.
const SINGLE: i32 = 0;

const FIRST: i32 = 1;

const SECOND: i32 = 2;

/// Decodes LAPACK's pivots. One invocation for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exchanges {
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub Exchanges as s => ExchangesArguments, ExchangesParameters {
        /// All are `[batch, n]`.
        pivots: Input = DType::I32,
        /// The row with which each row is exchanged, counted from 1.
        exchanges: Output = DType::I32,
        kinds: Output = DType::I32,
        batch: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Exchanges {
    fn name(&self) -> &'static str {
        "ldl_exchanges"
    }

    fn write<'b>(&self, b: &'b Builder, p: ExchangesParameters<'b>) {
        let matrix = linear_id(b, self.index);
        b.if_(matrix.lt(p.batch), || {
            let first = matrix * p.n.cast(self.index);
            let before = b.var(b.i32(SINGLE));
            b.for_(0, p.n, 1, |row| {
                let at = first + row.cast(self.index);
                let pivot = p.pivots.load(at);
                let block = before.get().eq(FIRST).select(b.i32(SECOND), b.i32(FIRST));
                let kind = pivot.lt(0).select(block, b.i32(SINGLE));
                let own = (row + 1).cast(ScalarType::I32);
                p.exchanges.store(at, kind.eq(SINGLE).select(pivot, kind.eq(FIRST).select(own, -pivot)));
                p.kinds.store(at, kind);
                before.set(kind);
            });
        });
    }
}

/// Applies to each column of L the row exchanges that came after it, and removes the off-diagonal
/// elements of D's blocks from it. One invocation for each column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermuteFactor {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub PermuteFactor as s => ArrangedArguments, ArrangedParameters {
        l: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        exchanges: Input = DType::I32,
        kinds: Input = DType::I32,
        /// Number of columns of all matrices.
        columns: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for PermuteFactor {
    fn name(&self) -> &'static str {
        "ldl_arranged"
    }

    fn write<'b>(&self, b: &'b Builder, p: ArrangedParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.columns), || {
            let n = p.n.cast(self.index);
            let (matrix, column) = ((i / n).cast(ScalarType::U32), (i % n).cast(ScalarType::U32));
            let first = i / n * n;
            let behind = b.var(column + 1);
            b.if_(p.kinds.load(i).eq(FIRST), || {
                p.l.store(p.strides.at(matrix, column + 1, column), Element::constant(b, self.dtype, 0.0));
                behind.set(column + 2);
            });
            b.for_(behind.get(), p.n, 1, |row| {
                let other = p.exchanges.load(first + row.cast(self.index)).cast(ScalarType::U32) - 1;
                b.if_(other.ne(row), || {
                    let [here, there] = [row, other].map(|row| p.strides.at(matrix, row, column));
                    let (x, y) = (p.l.load(here), p.l.load(there));
                    p.l.store(here, y);
                    p.l.store(there, x);
                });
            });
        });
    }
}

/// Solves with the block diagonal D in place. One invocation for each element, or for the two
/// elements of a block in a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SolveBlockDiagonal {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The matrices are Hermitian, not symmetric.
    pub hermitian: bool,
}

parameters! {
    pub SolveBlockDiagonal as s => DividedArguments, DividedParameters {
        d: InputElements = s.dtype,
        d_strides: MatrixStrides = s.index,
        kinds: Input = DType::I32,
        /// `[batch, n, k]`
        x: OutputElements = s.dtype,
        x_strides: MatrixStrides = s.index,
        numel: Index = s.index,
        n: U32,
        k: U32,
    }
}

impl KernelSpec for SolveBlockDiagonal {
    fn name(&self) -> &'static str {
        "ldl_divided"
    }

    fn write<'b>(&self, b: &'b Builder, p: DividedParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let (n, k) = (p.n.cast(self.index), p.k.cast(self.index));
            let line = i / n;
            let row = (i - line * n).cast(ScalarType::U32);
            let (matrix, column) = ((line / k).cast(ScalarType::U32), (line % k).cast(ScalarType::U32));
            let kind = p.kinds.load(matrix.cast(self.index) * n + row.cast(self.index));
            let d = |row, column| p.d.load(p.d_strides.at(matrix, row, column));
            let at = |row| p.x_strides.at(matrix, row, column);
            b.if_(kind.eq(SINGLE), || p.x.store(at(row), p.x.load(at(row)) / d(row, row)));
            b.if_(kind.eq(FIRST), || {
                let next = row + 1;
                let (phase, below) = coupling(d(next, row), self.hermitian);
                let (first, second) = (d(row, row) / below, d(next, next) / below);
                let determinant = first * second - first.like(1.0);
                let (x, y) = (p.x.load(at(row)) / below, p.x.load(at(next)) / below);
                p.x.store(at(row), (second * x - phase.conjugate().of(y)) / determinant);
                p.x.store(at(next), (first * y - phase.of(x)) / determinant);
            });
        });
    }
}

/// The divisor of a block of two columns from the element below its diagonal: for Hermitian
/// matrices the absolute value, and its phase.
pub fn coupling<'b>(below: Element<'b>, hermitian: bool) -> (UnitPhase<'b>, Element<'b>) {
    if !hermitian {
        return (UnitPhase(None), below);
    }
    let (phase, size) = UnitPhase::split(below);
    (phase, below.of_same_kind(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&Exchanges { index }.build());
            accepted(&PermuteFactor { dtype, index }.build());
            accepted(&SolveBlockDiagonal { dtype, index, hermitian: false }.build());
        }
        for (dtype, index) in [(DType::C64, ScalarType::U64), (DType::C128, ScalarType::U32)] {
            accepted(&PermuteFactor { dtype, index }.build());
            accepted(&SolveBlockDiagonal { dtype, index, hermitian: dtype == DType::C64 }.build());
        }
    }
}
