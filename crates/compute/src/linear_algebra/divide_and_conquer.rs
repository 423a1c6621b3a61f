//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices by divide and conquer.
//!
//! Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem", 1981: a
//! tridiagonal matrix minus a matrix of rank one is block-diagonal with two smaller ones, whose
//! eigenvectors transform it to a [diagonal plus a matrix of rank one](super::secular_equation).
//! The smallest parts are decomposed by [Jacobi's method](super::two_sided_jacobi). All parts of
//! one size are processed by the same launches: a matrix is padded with larger eigenvalues, so that
//! its size is a power of two times the smallest part's.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::deflation::Deflation;
use crate::linear_algebra::matrices::{self, Update};
use crate::linear_algebra::rank_one_modification::AdjacentParts;
use crate::linear_algebra::tridiagonal::Tridiagonal;
use crate::linear_algebra::{secular_equation, two_sided_jacobi};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Eigenvalues in ascending order, `[batch, n]`, and eigenvectors in columns of `[batch, n, n]`.
pub fn decompose(cx: &Context, t: &Tridiagonal) -> Result<(View, View)> {
    let (batch, n) = (t.diagonal.sizes[0], t.diagonal.sizes[1]);
    let real = t.diagonal.dtype;
    let most = u64::from(two_sided_jacobi::rows(real));
    let mut parts = (n as u64).div_ceil(most).next_power_of_two() as i64;
    let mut size = (n as u64).div_ceil(parts as u64) as i64;
    let whole = parts * size;

    let rows = cx.empty(real, &[batch * parts, size, size])?;
    let arguments = PartsArguments {
        diagonal: &t.diagonal,
        off_diagonal: &t.off_diagonal,
        bounds: &t.bounds,
        rows: &rows,
        numel: rows.numel(),
        size: size as u32,
        parts: parts as u32,
        n: n as u32,
    };
    cx.run_threads(
        &LeafMatrices { dtype: real, index: matrices::index_of(&[&rows]) },
        &arguments,
        rows.numel() as u64,
    )?;
    let mut values = cx.empty(real, &[batch * parts, size])?;
    let mut vectors = cx.empty(real, &[batch * parts, size, size])?;
    two_sided_jacobi::decompose(cx, &rows, &values, &vectors)?;

    while parts > 1 {
        (parts, size) = (parts / 2, size * 2);
        let (merges, half) = (batch * parts, size / 2);
        let pairs = values.as_strided(&[merges, size], &[size, 1], 0);
        let halves = AdjacentParts { values: &pairs, vectors: &vectors, off_diagonal: &t.off_diagonal };
        let deflated = Deflation::of(cx, &halves)?;
        let (merged, u) = secular_equation::solve(cx, &halves, &deflated)?;
        deflated.apply_inverse_rotations(cx, &u)?;
        // The rows of a part's eigenvectors are its old eigenvectors times rows of `u`.
        let apart = [half * size, size, 1];
        let next = cx.empty(real, &[merges, size, size])?;
        let [u, out] = [&u, &next].map(|t| t.as_strided(&[2 * merges, half, size], &apart, 0));
        matrices::multiply(cx, [&vectors, &u], &out, Update::Overwrite)?;
        (values, vectors) = (merged, next);
    }
    // The padding's eigenvalues come last.
    let values = values.as_strided(&[batch, n], &[whole, 1], 0);
    Ok((values, vectors.as_strided(&[batch, n, n], &[whole * whole, whole, 1], 0)))
}

/// Writes the smallest parts of tridiagonal matrices as square matrices. One invocation for each
/// element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LeafMatrices {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    LeafMatrices as s => PartsArguments, PartsParameters {
        diagonal: Input = s.dtype,
        off_diagonal: Input = s.dtype,
        bounds: Input = s.dtype,
        rows: Output = s.dtype,
        numel: Index = s.index,
        size: U32,
        /// Number of parts of a matrix.
        parts: U32,
        n: U32,
    }
}

impl KernelSpec for LeafMatrices {
    fn name(&self) -> &'static str {
        "tridiagonal_parts"
    }

    fn write<'b>(&self, b: &'b Builder, p: PartsParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.numel), || {
            let size = p.size.cast(index);
            let line = id / size;
            let (all, column) = (line / size, (id % size).cast(ScalarType::U32));
            let row = (line % size).cast(ScalarType::U32);
            let (matrix, part) = (all / p.parts.cast(index), (all % p.parts.cast(index)).cast(ScalarType::U32));
            let first = part * p.size;
            let at = |i: dml_kernel::Value<'b>| matrix * p.n.cast(index) + i.min(p.n - 1).cast(index);
            let bound = p.bounds.load(matrix);
            let zero = bound.like(0.0);
            // The subdiagonal element between row `i` and the next one.
            let coupling = |i: dml_kernel::Value<'b>| (i + 1).lt(p.n).select(p.off_diagonal.load(at(i)), zero);
            let on_diagonal = || {
                let i = first + row;
                let above = (row.eq(0) & i.gt(0)).select(coupling(i.max(1) - 1).abs(), zero);
                let below = (row + 1).eq(p.size).select(coupling(i).abs(), zero);
                let beyond = bound.is_zero().select(bound.like(1.0), bound * 2.0);
                i.lt(p.n).select((p.diagonal.load(at(i)) - above) - below, beyond)
            };
            let is_adjacent = (row.max(column) - row.min(column)).eq(1);
            let off_diagonal = is_adjacent.select(coupling(first + row.min(column)), zero);
            p.rows.store(id, row.eq(column).select(on_diagonal(), off_diagonal));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&LeafMatrices { dtype, index }.build());
        }
    }
}
