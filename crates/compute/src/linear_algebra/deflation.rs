//! Deflation: finds the eigenpairs that a rank-one modification `D + rho z z^T` of a diagonal
//! leaves unchanged, and the rotations that create more of them.
//!
//! As in LAPACK's `laed2` (Dongarra, Sorensen, "A fully parallel algorithm for the symmetric
//! eigenvalue problem", 1987): a negligible element of z leaves its eigenvalue unchanged, and of
//! two nearly equal eigenvalues one is deflated by a rotation. How many are not deflated is known
//! only on the device: arrays have room for all, and those come first.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices;
use crate::linear_algebra::rank_one_modification::{AdjacentParts, RankOneModification, coupling};
use crate::linear_algebra::workgroup_sums::{THREADS, WorkgroupReduction, larger};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Entries of a merge's counts: eigenvalues that are not deflated, and rotations.
const COUNTS: i64 = 2;

/// Rank-one modifications after deflation.
pub struct Deflation {
    /// The diagonal, ascending, and z, `[merges, size]`: eigenvalues that are not deflated come
    /// first.
    pub poles: View,
    pub z: View,
    /// The number of eigenvalues that are not deflated, and of rotations, `[merges, COUNTS]`.
    pub counts: View,
    /// The deflated eigenvalues, at the end, `[merges, size]`. The entries before them are left for
    /// the others.
    pub values: View,
    /// For each eigenvector of the parts the index of its eigenvalue in `poles` or `values`,
    /// `[merges, size]`.
    pub slots: View,
    /// Rotations of pairs of eigenvectors, `[merges, 2 size]`: the two indices, and cosine and
    /// sine.
    pairs: View,
    angles: View,
}

impl Deflation {
    /// Deflates the merges of these parts.
    pub fn of(cx: &Context, halves: &AdjacentParts) -> Result<Deflation> {
        let [merges, size] = halves.sizes();
        let (real, n) = (halves.values.dtype, halves.off_diagonal.sizes[1]);
        let RankOneModification { poles, z, order } = RankOneModification::of(cx, halves)?;
        let index = matrices::index_of(&[halves.vectors]);
        let deflated = Deflation {
            poles,
            z,
            counts: cx.empty(DType::I32, &[merges, COUNTS])?,
            values: cx.empty(real, &[merges, size])?,
            slots: cx.empty(DType::I32, &[merges, size])?,
            pairs: cx.empty(DType::I32, &[merges, 2 * size])?,
            angles: cx.empty(real, &[merges, 2 * size])?,
        };
        let arguments = DeflateArguments {
            off_diagonal: halves.off_diagonal,
            order: &order,
            poles: &deflated.poles,
            z: &deflated.z,
            counts: &deflated.counts,
            values: &deflated.values,
            slots: &deflated.slots,
            pairs: &deflated.pairs,
            angles: &deflated.angles,
            merges: merges as u32,
            size: size as u32,
            n: n as u32,
            merges_of_one: halves.merges_of_one() as u32,
        };
        cx.run(&Deflate { dtype: real, index }, &arguments, matrices::workgroups(merges, 1))?;
        Ok(deflated)
    }

    /// Applies the inverse rotations to the rows of `u`, `[merges, size, size]` contiguous: its
    /// columns are then the eigenvectors of the modification before the rotations.
    pub fn apply_inverse_rotations(&self, cx: &Context, u: &View) -> Result<()> {
        let [merges, size] = [u.sizes[0], u.sizes[1]];
        let columns = merges * size;
        let arguments = InverseRotationsArguments {
            u,
            counts: &self.counts,
            pairs: &self.pairs,
            angles: &self.angles,
            columns,
            size: size as u32,
        };
        cx.run_threads(
            &ApplyInverseRotations { dtype: u.dtype, index: matrices::index_of(&[u]) },
            &arguments,
            columns as u64,
        )
    }
}

/// Deflates. One workgroup for each merge, in which one invocation iterates over the eigenvalues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Deflate {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Deflate as s => DeflateArguments, DeflateParameters {
        off_diagonal: Input = s.dtype,
        order: Input = DType::I32,
        poles: Output = s.dtype,
        z: Output = s.dtype,
        counts: Output = DType::I32,
        values: Output = s.dtype,
        slots: Output = DType::I32,
        pairs: Output = DType::I32,
        angles: Output = s.dtype,
        merges: U32,
        size: U32,
        n: U32,
        merges_of_one: U32,
    }
}

impl KernelSpec for Deflate {
    fn name(&self) -> &'static str {
        "deflate_eigenvalues"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: DeflateParameters<'b>) {
        let (index, compute) = (self.index, self.dtype.compute());
        let (merge, _) = matrices::workgroup_tile(b, p.merges, b.u32(1));
        let local = b.local_id(0);
        let first = merge.cast(index) * p.size.cast(index);
        let at = |i: Value<'b>| first + i.cast(index);
        let zero = b.float(compute, 0.0);
        let rho = coupling(p.off_diagonal, index, (merge, p.merges_of_one), (p.size, p.n)).abs() * 2.0;
        // Eigenvalues that pad a part beyond the matrix have z = 0, and do not count for the
        // tolerance.
        let joined = WorkgroupReduction::new(b, compute, 1);
        let largest = b.var(rho);
        b.for_(local, p.size, THREADS, |i| {
            let counts = !p.z.load(at(i)).is_zero();
            largest.set(larger(largest.get(), counts.select(p.poles.load(at(i)).abs(), zero)));
        });
        joined.join(&[largest], larger);
        // The tolerance has a minimum, so that the squares of quotients do not overflow. The
        // matrix's norm is about one.
        let (epsilon, least) = match compute {
            ScalarType::F64 => (f64::EPSILON, 2f64.powi(-500)),
            _ => (f32::EPSILON.into(), 2f64.powi(-56)),
        };
        let tolerance = joined.result(0) * (4.0 * epsilon);
        let tolerance = tolerance.lt(b.float(compute, least)).select(b.float(compute, least), tolerance);

        b.if_(local.eq(0), || {
            let (left, end, rotations) = (b.var(b.u32(0)), b.var(p.size), b.var(b.u32(0)));
            // The candidate: the last eigenvalue that is not deflated, unless the next one is
            // nearly equal.
            let none = b.u32(u32::MAX);
            let (pole, z, vector) = (b.var(zero), b.var(zero), b.var(none));
            let slot = |vector: Value<'b>, to: Value<'b>| p.slots.store(at(vector), to.cast(ScalarType::I32));
            let done = |value: Value<'b>, vector: Value<'b>| {
                end.set(end.get() - 1);
                p.values.store(at(end.get()), value);
                slot(vector, end.get());
            };
            let keep = || {
                p.poles.store(at(left.get()), pole.get());
                p.z.store(at(left.get()), z.get());
                slot(vector.get(), left.get());
                left.set(left.get() + 1);
            };
            let hold = |new: (Value<'b>, Value<'b>, Value<'b>)| {
                pole.set(new.0);
                z.set(new.1);
                vector.set(new.2);
            };
            b.for_(0, p.size, 1, |i| {
                let (next, next_z) = (p.poles.load(at(i)), p.z.load(at(i)));
                let next_vector = p.order.load(at(i)).cast(ScalarType::U32).min(p.size - 1);
                b.if_else(
                    (rho * next_z.abs()).le(tolerance),
                    || done(next, next_vector),
                    || {
                        let (x, y) = (z.get(), next_z);
                        let square = x * x + y * y;
                        let equal = ((next - pole.get()) * (x * y).abs()).le(tolerance * square);
                        b.if_else(
                            vector.get().ne(none) & equal,
                            || {
                                let length = math::sqrt(square);
                                let (cosine, sine) = (y / length, -(x / length));
                                let (c, s) = (cosine * cosine, sine * sine);
                                let here = first * 2 + (rotations.get() * 2).cast(index);
                                p.pairs.store(here, vector.get().cast(ScalarType::I32));
                                p.pairs.store(here + 1, next_vector.cast(ScalarType::I32));
                                p.angles.store(here, cosine);
                                p.angles.store(here + 1, sine);
                                rotations.set(rotations.get() + 1);
                                let (one, other) = (pole.get() * c + next * s, pole.get() * s + next * c);
                                done(one, vector.get());
                                hold((other, length, next_vector));
                            },
                            || {
                                b.if_(vector.get().ne(none), keep);
                                hold((next, next_z, next_vector));
                            },
                        );
                    },
                );
            });
            b.if_(vector.get().ne(none), keep);
            let counts = merge.cast(index) * (COUNTS as u32);
            p.counts.store(counts, left.get().cast(ScalarType::I32));
            p.counts.store(counts + 1, rotations.get().cast(ScalarType::I32));
        });
    }
}

/// The number of a merge's eigenvalues that are not deflated (u32), from `counts`.
pub fn left<'b>(counts: dml_kernel::Pointer<'b>, index: ScalarType, merge: Value<'b>) -> Value<'b> {
    counts.load(merge.cast(index) * (COUNTS as u32)).cast(ScalarType::U32)
}

/// Applies inverse rotations to rows, the last rotation first. One invocation for each column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ApplyInverseRotations {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    ApplyInverseRotations as s => InverseRotationsArguments, InverseRotationsParameters {
        u: Output = s.dtype,
        counts: Input = DType::I32,
        pairs: Input = DType::I32,
        angles: Input = s.dtype,
        columns: Index = s.index,
        size: U32,
    }
}

impl KernelSpec for ApplyInverseRotations {
    fn name(&self) -> &'static str {
        "turn_back_rows"
    }

    fn write<'b>(&self, b: &'b Builder, p: InverseRotationsParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.columns), || {
            let size = p.size.cast(index);
            let (merge, column) = (id / size, id % size);
            let rotations = p.counts.load(merge * (COUNTS as u32) + 1).cast(ScalarType::U32);
            b.for_(0, rotations, 1, |step| {
                let here = merge * size * 2 + ((rotations - 1 - step) * 2).cast(index);
                let row = |i: u32| (merge * size + p.pairs.load(here + i).cast(index)) * size + column;
                let (x_at, y_at) = (row(0), row(1));
                let (x, y) = (p.u.load(x_at), p.u.load(y_at));
                let (cosine, sine) = (p.angles.load(here), p.angles.load(here + 1));
                p.u.store(x_at, cosine * x - sine * y);
                p.u.store(y_at, sine * x + cosine * y);
            });
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
            accepted(&Deflate { dtype, index }.build());
            accepted(&ApplyInverseRotations { dtype, index }.build());
        }
    }
}
