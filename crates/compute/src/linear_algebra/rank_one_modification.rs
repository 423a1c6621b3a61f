//! Rank-one modifications `D + rho z z^T` of diagonal matrices, from which the eigenvalues of a
//! tridiagonal matrix follow: each couples two adjacent parts whose eigenvalues are known.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Pairs of adjacent parts of tridiagonal matrices, which are to be merged.
pub struct AdjacentParts<'a> {
    /// Eigenvalues of the two parts, each ascending, `[merges, size]`.
    pub values: &'a View,
    /// Eigenvectors of the parts as columns, `[2 merges, size / 2, size / 2]`, contiguous.
    pub vectors: &'a View,
    /// The subdiagonals of the whole matrices, `[batch, n]`.
    pub off_diagonal: &'a View,
}

impl AdjacentParts<'_> {
    /// Number of merges, and eigenvalues of each.
    pub fn sizes(&self) -> [i64; 2] {
        [self.values.sizes[0], self.values.sizes[1]]
    }

    /// Number of merges of a matrix.
    pub fn merges_of_one(&self) -> i64 {
        self.values.sizes[0] / self.off_diagonal.sizes[0]
    }
}

/// Rank-one modifications, `[merges, size]`.
pub struct RankOneModification {
    /// The diagonal, ascending.
    pub poles: View,
    /// The vector z.
    pub z: View,
    /// Index of the eigenvector that belongs to each pole.
    pub order: View,
}

impl RankOneModification {
    /// The modifications that couple these parts.
    pub fn of(cx: &Context, halves: &AdjacentParts) -> Result<RankOneModification> {
        let sizes = halves.sizes();
        let real = halves.values.dtype;
        let (poles, z) = (cx.empty(real, &sizes)?, cx.empty(real, &sizes)?);
        let order = cx.empty(DType::I32, &sizes)?;
        let arguments = MergeArguments {
            values: halves.values,
            vectors: halves.vectors,
            off_diagonal: halves.off_diagonal,
            poles: &poles,
            z: &z,
            order: &order,
            numel: poles.numel(),
            size: sizes[1] as u32,
            n: halves.off_diagonal.sizes[1] as u32,
            merges_of_one: halves.merges_of_one() as u32,
        };
        let index = matrices::index_of(&[halves.vectors]);
        cx.run_threads(&Merge { dtype: real, index }, &arguments, poles.numel() as u64)?;
        Ok(RankOneModification { poles, z, order })
    }
}

/// The coupling of a merge's two parts: the subdiagonal element, or 0 if the second part is beyond
/// the matrix.
pub fn coupling<'b>(
    off_diagonal: Pointer<'b>,
    index: ScalarType,
    (merge, merges_of_one): (Value<'b>, Value<'b>),
    (size, n): (Value<'b>, Value<'b>),
) -> Value<'b> {
    let matrix = merge / merges_of_one;
    let split = (merge - matrix * merges_of_one) * size + size / 2;
    let value = off_diagonal.load(matrix.cast(index) * n.cast(index) + (split.min(n) - 1).cast(index));
    split.lt(n).select(value, value.like(0.0))
}

/// Merges two ascending lists of eigenvalues, and computes z from the eigenvectors' elements at the
/// split. One invocation for each eigenvalue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Merge {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Merge as s => MergeArguments, MergeParameters {
        values: Input = s.dtype,
        vectors: Input = s.dtype,
        off_diagonal: Input = s.dtype,
        poles: Output = s.dtype,
        z: Output = s.dtype,
        /// Index of the eigenvector that belongs to each pole.
        order: Output = DType::I32,
        numel: Index = s.index,
        size: U32,
        n: U32,
        merges_of_one: U32,
    }
}

impl KernelSpec for Merge {
    fn name(&self) -> &'static str {
        "merge_eigenvalues"
    }

    fn write<'b>(&self, b: &'b Builder, p: MergeParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.numel), || {
            let size = p.size.cast(index);
            let merge = id / size;
            let (first, i) = (merge * size, (id % size).cast(ScalarType::U32));
            let half = p.size / 2;
            let second = i.ge(half);
            let own = second.select(i - half, i);
            let value = p.values.load(id);
            // Rank in the other list; equal eigenvalues of the first list come first.
            let other = first + second.select(b.u32(0), half).cast(index);
            let (low, high) = (b.var(b.u32(0)), b.var(half));
            b.while_(
                || low.get().lt(high.get()),
                || {
                    let middle = (low.get() + high.get()) / 2;
                    let there = p.values.load(other + middle.cast(index));
                    let comes = there.lt(value) | (second & there.eq(value));
                    low.set(comes.select(middle + 1, low.get()));
                    high.set(comes.select(high.get(), middle));
                },
            );
            let to = first + (own + low.get()).cast(index);
            let rho = coupling(p.off_diagonal, index, (merge.cast(ScalarType::U32), p.merges_of_one), (p.size, p.n));
            let part = merge * 2 + second.cast(index);
            let row = second.select(b.u32(0), half - 1);
            let at = (part * half.cast(index) + row.cast(index)) * half.cast(index) + own.cast(index);
            let z = p.vectors.load(at) * std::f64::consts::FRAC_1_SQRT_2;
            p.poles.store(to, value);
            p.z.store(to, (second & rho.is_below_zero()).select(-z, z));
            p.order.store(to, i.cast(ScalarType::I32));
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
            accepted(&Merge { dtype, index }.build());
        }
    }
}
