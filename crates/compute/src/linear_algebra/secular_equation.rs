//! Eigenvalues and eigenvectors of diagonal matrices plus a matrix of rank one, `D + rho z z^T`.
//!
//! The eigenvalues are the roots of the secular equation `1 + rho sum z_i^2 / (d_i - x) = 0`, one
//! between each two poles and one above the last. A root is represented by its distance to the
//! nearest pole, so that its distances to all poles are accurate to all digits. From these
//! distances z is recomputed such that the roots are exact for it: so eigenvectors are orthogonal
//! however close roots are (Gu, Eisenstat, "A divide-and-conquer algorithm for the symmetric
//! tridiagonal eigenproblem", 1995).
//!
//! Between bounds where the function has different signs, the invocations try as many distances in
//! parallel. These are evenly spaced as bit patterns, which are ordered like floats of one sign: a
//! fixed number of rounds reaches adjacent floats.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::deflation::{self, Deflation};
use crate::linear_algebra::rank_one_modification::{AdjacentParts, coupling};
use crate::linear_algebra::workgroup_sums::{THREADS, WorkgroupReduction};
use crate::linear_algebra::{matrices, sorted_columns};
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Atomic, Builder, DType, Pointer, ScalarType, Value, math};

/// Invocations that search for one root.
const LANES: u32 = 32;

/// Number of rounds until the bounds are adjacent floats: each round divides the interval by
/// `LANES + 1`.
const fn rounds(compute: ScalarType) -> u32 {
    if matches!(compute, ScalarType::F64) { 13 } else { 7 }
}

/// Eigenvalues of merged parts, ascending, `[merges, size]`, and the eigenvectors as columns of
/// `[merges, size, size]`, contiguous, in the basis of the parts' eigenvectors.
pub fn solve(cx: &Context, halves: &AdjacentParts, deflated: &Deflation) -> Result<(View, View)> {
    let [merges, size] = halves.sizes();
    let real = halves.values.dtype;
    let rounds = i64::from(rounds(real.compute())) + 1;
    check_loop_iterations(cx, rounds * (size + 1))?;
    let (origins, distances) = (cx.empty(DType::I32, &[merges, size])?, cx.empty(real, &[merges, size])?);
    let u = cx.empty(real, &[merges, size, size])?;
    let index = matrices::index_of(&[&u]);
    let tiles = (size as u64).div_ceil((THREADS / LANES).into()) as i64;
    let (poles, counts) = (&deflated.poles, &deflated.counts);
    let arguments = RootsArguments {
        poles,
        z: &deflated.z,
        counts,
        off_diagonal: halves.off_diagonal,
        origins: &origins,
        distances: &distances,
        values: &deflated.values,
        merges: merges as u32,
        size: size as u32,
        n: halves.off_diagonal.sizes[1] as u32,
        merges_of_one: halves.merges_of_one() as u32,
        tiles: tiles as u32,
    };
    // A quotient costs about eight multiplications.
    let operations = multiply_adds(real, (merges * size * size * i64::from(LANES) * rounds * 10) as u64);
    let spec = FindRoots { dtype: real, index };
    cx.run_with_cost(&spec, &arguments, matrices::workgroups(merges, tiles), operations)?;

    let z = cx.empty(real, &[merges, size])?;
    let arguments = ModifiedArguments {
        poles,
        given: &deflated.z,
        counts,
        origins: &origins,
        distances: &distances,
        z: &z,
        numel: z.numel(),
        size: size as u32,
    };
    let operations = multiply_adds(real, (merges * size * size * 10) as u64);
    cx.run_with_cost(
        &RecomputeZ { dtype: real, index },
        &arguments,
        dml_kernel::dense::groups(z.numel() as u64),
        operations,
    )?;

    let values = cx.empty(real, &[merges, size])?;
    let ranks = sorted_columns::sort(cx, &deflated.values, &values, false)?;
    let arguments = VectorsArguments {
        poles,
        z: &z,
        counts,
        origins: &origins,
        distances: &distances,
        slots: &deflated.slots,
        ranks: &ranks,
        u: &u,
        merges: merges as u32,
        size: size as u32,
    };
    cx.run(&Vectors { dtype: real, index }, &arguments, matrices::workgroups(merges, size))?;
    Ok((values, u))
}

/// The roots of a merge, as the nearest pole and the distance to it.
struct RootSet<'b> {
    poles: Pointer<'b>,
    origins: Pointer<'b>,
    distances: Pointer<'b>,
    /// Offset of the merge's numbers.
    first: Value<'b>,
}

impl<'b> RootSet<'b> {
    fn at(&self, i: Value<'b>) -> Value<'b> {
        self.first + i.cast(self.first.scalar())
    }

    fn pole(&self, i: Value<'b>) -> Value<'b> {
        self.poles.load(self.at(i))
    }

    /// The distance from root `j` to pole `i`.
    fn to_pole(&self, i: Value<'b>, j: Value<'b>) -> Value<'b> {
        let origin = self.pole(self.origins.load(self.at(j)).cast(ScalarType::U32));
        (self.pole(i) - origin) - self.distances.load(self.at(j))
    }
}

/// Finds roots. [`LANES`] invocations for each root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FindRoots {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    FindRoots as s => RootsArguments, RootsParameters {
        poles: Input = s.dtype,
        z: Input = s.dtype,
        counts: Input = DType::I32,
        off_diagonal: Input = s.dtype,
        /// The pole nearest to each root, and the distance from it.
        origins: Output = DType::I32,
        distances: Output = s.dtype,
        /// The roots.
        values: Output = s.dtype,
        merges: U32,
        size: U32,
        n: U32,
        merges_of_one: U32,
        tiles: U32,
    }
}

impl KernelSpec for FindRoots {
    fn name(&self) -> &'static str {
        "secular_roots"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RootsParameters<'b>) {
        let (index, compute) = (self.index, self.dtype.compute());
        let (merge, tile) = matrices::workgroup_tile(b, p.merges, p.tiles);
        let left = deflation::left(p.counts, index, merge);
        let each = THREADS / LANES;
        b.if_((tile * each).ge(left), || b.return_());
        let (own, lane) = (b.local_id(0) / LANES, b.local_id(0) % LANES);
        let root = tile * each + own;
        let exists = root.lt(left);
        let root = root.min(left - 1);
        let first = merge.cast(index) * p.size.cast(index);
        let at = |i: Value<'b>| first + i.cast(index);
        let pole = |i: Value<'b>| p.poles.load(at(i));
        let rho = coupling(p.off_diagonal, index, (merge, p.merges_of_one), (p.size, p.n)).abs() * 2.0;
        let zero = b.float(compute, 0.0);
        let one = b.float(compute, 1.0);

        // The secular function at a distance from a pole. Terms on both sides of the root are
        // summed with the largest last.
        let function = |origin: Value<'b>, distance: Value<'b>| {
            let [before, behind] = [(); 2].map(|()| b.var(zero));
            let term = |i: Value<'b>| {
                let z = p.z.load(at(i));
                z * z / ((pole(i) - origin) - distance)
            };
            b.for_(0, root + 1, 1, |i| before.set(before.get() + term(i)));
            b.for_(root + 1, left, 1, |i| behind.set(behind.get() + term(left + root - i)));
            one + rho * (before.get() + behind.get())
        };
        let (low, high) = (pole(root), pole((root + 1).min(left - 1)));
        let is_last = (root + 1).eq(left);
        let middle = (high - low) * 0.5;
        // The last root is at most rho above the last pole, as z has norm one.
        let furthest = is_last.select(rho * 1.01, middle);
        let nearer_to_next = !is_last & function(low, middle).lt(zero);
        let origin = nearer_to_next.select(high, low);
        let signed = |distance: Value<'b>| nearer_to_next.select(-distance, distance);

        let bits = compute.unsigned();
        let least = if compute == ScalarType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let least = b.float(compute, least).bitcast(bits);
        let lower = b.var(least);
        let upper = b.var(furthest.bitcast(bits).max(least));
        let nearer = b.shared(ScalarType::U32, 1, each);
        b.for_(0, b.u32(rounds(compute)), 1, |_| {
            let (from, to) = (lower.get(), upper.get());
            let step = (to - from) / (LANES + 1) + 1;
            let tried = from + step * (lane + 1).cast(bits);
            let inside = tried.lt(to);
            let value = function(origin, signed(inside.select(tried, to).bitcast(compute)));
            // The function increases with x, from minus infinity at the pole on the left to
            // infinity at the pole on the right.
            let is_nearer = inside & (nearer_to_next.select(value, -value).gt(zero));
            b.barrier();
            b.if_(lane.eq(0), || nearer.store(own, 0));
            b.barrier();
            b.if_(is_nearer, || {
                nearer.atomic(Atomic::Add, own, 1);
            });
            b.barrier();
            let count = nearer.load(own).cast(bits);
            lower.set(from + step * count);
            upper.set(to.min(from + step * (count + 1)));
        });
        b.if_(exists & lane.eq(0), || {
            let distance = signed(upper.get().bitcast(compute));
            p.origins.store(at(root), (root + nearer_to_next.cast(ScalarType::U32)).cast(ScalarType::I32));
            p.distances.store(at(root), distance);
            p.values.store(at(root), origin + distance);
        });
    }
}

/// Computes the z for which the roots are exact. One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RecomputeZ {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    RecomputeZ as s => ModifiedArguments, ModifiedParameters {
        poles: Input = s.dtype,
        /// The original z, whose signs are used.
        given: Input = s.dtype,
        counts: Input = DType::I32,
        origins: Input = DType::I32,
        distances: Input = s.dtype,
        /// The new z, up to a common factor.
        z: Output = s.dtype,
        numel: Index = s.index,
        size: U32,
    }
}

impl KernelSpec for RecomputeZ {
    fn name(&self) -> &'static str {
        "secular_modified"
    }

    fn write<'b>(&self, b: &'b Builder, p: ModifiedParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.numel), || {
            let size = p.size.cast(index);
            let merge = id / size;
            let (i, left) = ((id % size).cast(ScalarType::U32), deflation::left(p.counts, index, merge));
            b.if_(i.lt(left), || {
                let found = RootSet { poles: p.poles, origins: p.origins, distances: p.distances, first: merge * size };
                let own = found.pole(i);
                // Each factor is at most one: the distance to a root, divided by the distance to
                // the pole further away.
                let product = b.var(found.to_pole(i, left - 1).abs());
                b.for_(0, left - 1, 1, |j| {
                    let other = found.pole(j.lt(i).select(j, j + 1));
                    product.set(product.get() * (found.to_pole(i, j) / (own - other)).abs());
                });
                let (z, given) = (math::sqrt(product.get()), p.given.load(id));
                p.z.store(id, given.is_below_zero().select(-z, z));
            });
        });
    }
}

/// Writes eigenvectors. One workgroup for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Vectors {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Vectors as s => VectorsArguments, VectorsParameters {
        poles: Input = s.dtype,
        z: Input = s.dtype,
        counts: Input = DType::I32,
        origins: Input = DType::I32,
        distances: Input = s.dtype,
        slots: Input = DType::I32,
        /// The columns of the result.
        ranks: Input = DType::I32,
        u: Output = s.dtype,
        merges: U32,
        size: U32,
    }
}

impl KernelSpec for Vectors {
    fn name(&self) -> &'static str {
        "secular_vectors"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: VectorsParameters<'b>) {
        let (index, compute) = (self.index, self.dtype.compute());
        let (merge, root) = matrices::workgroup_tile(b, p.merges, p.size);
        let local = b.local_id(0);
        let first = merge.cast(index) * p.size.cast(index);
        let left = deflation::left(p.counts, index, merge);
        let found = RootSet { poles: p.poles, origins: p.origins, distances: p.distances, first };
        let slot = |row: Value<'b>| p.slots.load(found.at(row)).cast(ScalarType::U32);
        let column = p.ranks.load(found.at(root)).cast(index);
        let to = |row: Value<'b>| found.at(row) * p.size.cast(index) + column;
        b.if_else(
            root.lt(left),
            || {
                let element = |row: Value<'b>| {
                    let own = slot(row);
                    let i = own.min(left - 1);
                    let value = p.z.load(found.at(i)) / found.to_pole(i, root);
                    own.lt(left).select(value, value.like(0.0))
                };
                let joined = WorkgroupReduction::new(b, compute, 1);
                let sum = b.var(b.float(compute, 0.0));
                b.for_(local, p.size, THREADS, |row| {
                    let value = element(row);
                    sum.set(sum.get() + value * value);
                });
                joined.join(&[sum], |x, y| x + y);
                let length = math::sqrt(joined.result(0));
                b.for_(local, p.size, THREADS, |row| p.u.store(to(row), element(row) / length));
            },
            // A deflated eigenvector is one of a part's.
            || b.for_(local, p.size, THREADS, |row| p.u.store(to(row), slot(row).eq(root).cast(compute))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&FindRoots { dtype, index }.build());
            accepted(&RecomputeZ { dtype, index }.build());
            accepted(&Vectors { dtype, index }.build());
        }
    }

    #[test]
    fn rounds_reach_neighbours() {
        for (compute, patterns) in [(ScalarType::F32, 2f64.powi(31)), (ScalarType::F64, 2f64.powi(63))] {
            assert!(f64::from(LANES + 1).powi(rounds(compute) as i32) > 2.0 * patterns);
        }
    }
}
