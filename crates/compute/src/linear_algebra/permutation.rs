//! Kernels for pivots: the permutation matrix of row exchanges, and the determinant from an LU
//! decomposition.

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements};
use crate::linear_algebra::matrices::MatrixStrides;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Writes, for each row of `P^T A`, its row index in A. One invocation for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Permutation {
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub(super) Permutation as s => PermutationArguments, PermutationParameters {
        pivots: Input = DType::I32,
        /// `[batch, rows]`
        rows_of: Output = DType::I32,
        batch: Index = s.index,
        rows: U32,
        steps: U32,
    }
}

impl KernelSpec for Permutation {
    fn name(&self) -> &'static str {
        "permutation_of_pivots"
    }

    fn write<'b>(&self, b: &'b Builder, p: PermutationParameters<'b>) {
        let index = self.index;
        let matrix = linear_id(b, index);
        b.if_(matrix.lt(p.batch), || {
            let first = matrix * p.rows.cast(index);
            b.for_(0, p.rows, 1, |row| p.rows_of.store(first + row.cast(index), row.cast(ScalarType::I32)));
            b.for_(0, p.steps, 1, |step| {
                let other = p.pivots.load(matrix * p.steps.cast(index) + step.cast(index)) - 1;
                let [here, there] = [step.cast(index), other.cast(index)].map(|row| first + row);
                let (x, y) = (p.rows_of.load(here), p.rows_of.load(there));
                p.rows_of.store(here, y);
                p.rows_of.store(there, x);
            });
        });
    }
}

/// Writes the permutation matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PermutationMatrix {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub(super) PermutationMatrix as s => PermutationMatrixArguments, PermutationMatrixParameters {
        rows_of: Input = DType::I32,
        /// `[batch, rows, rows]`, contiguous.
        out: OutputElements = s.dtype,
        numel: Index = s.index,
        rows: U32,
    }
}

impl KernelSpec for PermutationMatrix {
    fn name(&self) -> &'static str {
        "permutation_matrix"
    }

    fn write<'b>(&self, b: &'b Builder, p: PermutationMatrixParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let n = p.rows.cast(self.index);
            let (line, column) = (i / n, i % n);
            let (matrix, row) = (line / n, line % n);
            let one = p.rows_of.load(matrix * n + column).cast(self.index).eq(row);
            p.out.store(i, Element::of_real(self.dtype, one.cast(self.dtype.compute())));
        });
    }
}

/// The result computed from the diagonals.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiagonalOperation {
    /// The determinant.
    Determinant,
    /// The sign and the logarithm of the absolute value.
    Logarithm,
}

/// Computes determinants. One invocation for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Determinant {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The result.
    pub of: DiagonalOperation,
}

parameters! {
    pub(super) Determinant as s => DeterminantArguments, DeterminantParameters {
        lu: InputElements = s.dtype,
        strides: MatrixStrides = s.index,
        pivots: Input = DType::I32,
        /// The determinant or its sign.
        out: OutputElements = s.dtype,
        /// The logarithm, if it is computed; otherwise not written.
        logarithm: Output = s.dtype.real(),
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Determinant {
    fn name(&self) -> &'static str {
        "determinant"
    }

    fn write<'b>(&self, b: &'b Builder, p: DeterminantParameters<'b>) {
        let compute = self.dtype.compute();
        let matrix = linear_id(b, ScalarType::U32);
        b.if_(matrix.lt(p.batch), || {
            let product = ElementVar::var(b, Element::constant(b, self.dtype, 1.0));
            let sum = b.var(b.float(compute, 0.0));
            let first = matrix.cast(self.index) * p.n.cast(self.index);
            b.for_(0, p.n, 1, |i| {
                let element = p.lu.load(p.strides.at(matrix, i, i));
                let factor = match self.of {
                    DiagonalOperation::Determinant => element,
                    DiagonalOperation::Logarithm => {
                        sum.set(sum.get() + math::log(element.abs()));
                        element.sign()
                    }
                };
                let stays = p.pivots.load(first + i.cast(self.index)).eq((i + 1).cast(ScalarType::I32));
                product.set(product.get() * Element::select(stays, factor, -factor));
            });
            p.out.store(matrix, product.get());
            if self.of == DiagonalOperation::Logarithm {
                p.logarithm.store(matrix, sum.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [
            (DType::F32, ScalarType::U32),
            (DType::F64, ScalarType::U64),
            (DType::C64, ScalarType::U64),
            (DType::C128, ScalarType::U32),
        ] {
            accepted(&Permutation { index }.build());
            accepted(&PermutationMatrix { dtype, index }.build());
            for of in [DiagonalOperation::Determinant, DiagonalOperation::Logarithm] {
                accepted(&Determinant { dtype, index, of }.build());
            }
        }
    }
}
