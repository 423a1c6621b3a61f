//! Deflation: what a modification of rank one `D + rho z z^T` of a diagonal leaves as it is, and
//! the rotations that make it more.
//!
//! As LAPACK's `laed2` has it (Dongarra, Sorensen, "A fully parallel algorithm for the symmetric
//! eigenvalue problem", 1987): an element of z that is next to nothing leaves its eigenvalue alone,
//! and of two eigenvalues that are next to equal a rotation frees one. How many are left only the
//! device knows: they come first in arrays that have room for all.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices;
use crate::linear_algebra::workgroup_sums::{Joined, THREADS, larger};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Numbers of a merge's counts: eigenvalues that are left, and rotations.
const COUNTS: i64 = 2;

/// Pairs of neighbouring parts of tridiagonal matrices, which are to be merged.
pub struct Halves<'a> {
    /// Eigenvalues of the parts, ascending, `[merges, size]`: two parts after one another.
    pub values: &'a View,
    /// Their eigenvectors in columns, `[2 merges, size / 2, size / 2]`, contiguous.
    pub vectors: &'a View,
    /// What stands beside the diagonals of the whole matrices, `[batch, n]`.
    pub beside: &'a View,
}

impl Halves<'_> {
    /// Merges, and eigenvalues of each.
    pub fn sizes(&self) -> [i64; 2] {
        [self.values.sizes[0], self.values.sizes[1]]
    }

    /// Merges of a matrix.
    pub fn merges_of_one(&self) -> i64 {
        self.values.sizes[0] / self.beside.sizes[0]
    }
}

/// Modifications of rank one, deflated.
pub struct Deflated {
    /// The diagonals, ascending, and z, `[merges, size]`: what is left comes first.
    pub poles: View,
    pub z: View,
    /// `[merges, COUNTS]`
    pub counts: View,
    /// Behind room for what is left, the eigenvalues that are done, `[merges, size]`.
    pub values: View,
    /// For each eigenvector of the parts where its eigenvalue is among `poles` or `values`,
    /// `[merges, size]`.
    pub slots: View,
    /// Rotations of pairs of eigenvectors, `[merges, 2 size]`: two of them, and cosine and sine.
    pairs: View,
    turns: View,
}

impl Deflated {
    /// Of the merges of these parts.
    pub fn of(cx: &Context, halves: &Halves) -> Result<Deflated> {
        let [merges, size] = halves.sizes();
        let (real, n) = (halves.values.dtype, halves.beside.sizes[1]);
        let [poles, z, values] = [(); 3].map(|()| cx.empty(real, &[merges, size]));
        let (poles, z, values) = (poles?, z?, values?);
        let order = cx.empty(DType::I32, &[merges, size])?;
        let index = matrices::index_of(&[halves.vectors]);
        let merges_of_one = halves.merges_of_one() as u32;
        let arguments = MergeArguments {
            values: halves.values,
            vectors: halves.vectors,
            beside: halves.beside,
            poles: &poles,
            z: &z,
            order: &order,
            numel: poles.numel(),
            size: size as u32,
            n: n as u32,
            merges_of_one,
        };
        cx.run_threads(&Merge { dtype: real, index }, &arguments, poles.numel() as u64)?;
        let deflated = Deflated {
            poles,
            z,
            counts: cx.empty(DType::I32, &[merges, COUNTS])?,
            values,
            slots: cx.empty(DType::I32, &[merges, size])?,
            pairs: cx.empty(DType::I32, &[merges, 2 * size])?,
            turns: cx.empty(real, &[merges, 2 * size])?,
        };
        let arguments = DeflateArguments {
            beside: halves.beside,
            order: &order,
            poles: &deflated.poles,
            z: &deflated.z,
            counts: &deflated.counts,
            values: &deflated.values,
            slots: &deflated.slots,
            pairs: &deflated.pairs,
            turns: &deflated.turns,
            merges: merges as u32,
            size: size as u32,
            n: n as u32,
            merges_of_one,
        };
        cx.run(&Deflate { dtype: real, index }, &arguments, matrices::workgroups(merges, 1))?;
        Ok(deflated)
    }

    /// Applies the rotations to the rows of `u`, `[merges, size, size]` contiguous: its columns are
    /// then eigenvectors of what was not rotated.
    pub fn turn_back(&self, cx: &Context, u: &View) -> Result<()> {
        let [merges, size] = [u.sizes[0], u.sizes[1]];
        let columns = merges * size;
        let arguments = TurnBackArguments {
            u,
            counts: &self.counts,
            pairs: &self.pairs,
            turns: &self.turns,
            columns,
            size: size as u32,
        };
        cx.run_threads(&TurnBack { dtype: u.dtype, index: matrices::index_of(&[u]) }, &arguments, columns as u64)
    }
}

/// What couples the two parts of a merge: the element beside the diagonal, or 0 where the second
/// part is beyond the matrix.
pub fn coupling<'b>(
    beside: dml_kernel::Pointer<'b>,
    index: ScalarType,
    (merge, merges_of_one): (Value<'b>, Value<'b>),
    (size, n): (Value<'b>, Value<'b>),
) -> Value<'b> {
    let matrix = merge / merges_of_one;
    let split = (merge - matrix * merges_of_one) * size + size / 2;
    let value = beside.load(matrix.cast(index) * n.cast(index) + (split.min(n) - 1).cast(index));
    split.lt(n).select(value, value.like(0.0))
}

/// Merges two ascending lists of eigenvalues, and makes z of the eigenvectors' elements at the
/// split. An invocation takes an eigenvalue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Merge {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Merge as s => MergeArguments, MergeParameters {
        values: Input = s.dtype,
        vectors: Input = s.dtype,
        beside: Input = s.dtype,
        poles: Output = s.dtype,
        z: Output = s.dtype,
        /// Which eigenvector an element of these is of.
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
            // How many of the other list come before: of equal ones those of the first.
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
            let rho = coupling(p.beside, index, (merge.cast(ScalarType::U32), p.merges_of_one), (p.size, p.n));
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

/// Deflates. A workgroup takes a merge, and one invocation of it goes through the eigenvalues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Deflate {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Deflate as s => DeflateArguments, DeflateParameters {
        beside: Input = s.dtype,
        order: Input = DType::I32,
        poles: Output = s.dtype,
        z: Output = s.dtype,
        counts: Output = DType::I32,
        values: Output = s.dtype,
        slots: Output = DType::I32,
        pairs: Output = DType::I32,
        turns: Output = s.dtype,
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
        let (merge, _) = matrices::own_tile(b, p.merges, b.u32(1));
        let local = b.local_id(0);
        let first = merge.cast(index) * p.size.cast(index);
        let at = |i: Value<'b>| first + i.cast(index);
        let zero = b.float(compute, 0.0);
        let rho = coupling(p.beside, index, (merge, p.merges_of_one), (p.size, p.n)).abs() * 2.0;
        // What beyond the matrix there is to fill the parts has no z, and says nothing of how large
        // eigenvalues are.
        let joined = Joined::new(b, compute, 1);
        let largest = b.var(rho);
        b.for_(local, p.size, THREADS, |i| {
            let counts = !p.z.load(at(i)).is_zero();
            largest.set(larger(largest.get(), counts.select(p.poles.load(at(i)).abs(), zero)));
        });
        joined.join(&[largest], larger);
        // Nor is anything left that is so small beside a matrix of length one that quotients would
        // overflow when they are squared.
        let (epsilon, least) = match compute {
            ScalarType::F64 => (f64::EPSILON, 2f64.powi(-500)),
            _ => (f32::EPSILON.into(), 2f64.powi(-56)),
        };
        let tolerance = joined.result(0) * (4.0 * epsilon);
        let tolerance = tolerance.lt(b.float(compute, least)).select(b.float(compute, least), tolerance);

        b.if_(local.eq(0), || {
            let (left, end, rotations) = (b.var(b.u32(0)), b.var(p.size), b.var(b.u32(0)));
            // One that is left unless the next is next to equal.
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
                                p.turns.store(here, cosine);
                                p.turns.store(here + 1, sine);
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

/// How many eigenvalues of a merge are left (u32), of its counts.
pub fn left<'b>(counts: dml_kernel::Pointer<'b>, index: ScalarType, merge: Value<'b>) -> Value<'b> {
    counts.load(merge.cast(index) * (COUNTS as u32)).cast(ScalarType::U32)
}

/// Applies rotations to rows, the last one first. An invocation takes a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TurnBack {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    TurnBack as s => TurnBackArguments, TurnBackParameters {
        u: Output = s.dtype,
        counts: Input = DType::I32,
        pairs: Input = DType::I32,
        turns: Input = s.dtype,
        columns: Index = s.index,
        size: U32,
    }
}

impl KernelSpec for TurnBack {
    fn name(&self) -> &'static str {
        "turn_back_rows"
    }

    fn write<'b>(&self, b: &'b Builder, p: TurnBackParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.columns), || {
            let size = p.size.cast(index);
            let (merge, column) = (id / size, id % size);
            let rotations = p.counts.load(merge * (COUNTS as u32) + 1).cast(ScalarType::U32);
            b.for_(0, rotations, 1, |turn| {
                let here = merge * size * 2 + ((rotations - 1 - turn) * 2).cast(index);
                let row = |i: u32| (merge * size + p.pairs.load(here + i).cast(index)) * size + column;
                let (x_at, y_at) = (row(0), row(1));
                let (x, y) = (p.u.load(x_at), p.u.load(y_at));
                let (cosine, sine) = (p.turns.load(here), p.turns.load(here + 1));
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
            accepted(&Merge { dtype, index }.build());
            accepted(&Deflate { dtype, index }.build());
            accepted(&TurnBack { dtype, index }.build());
        }
    }
}
