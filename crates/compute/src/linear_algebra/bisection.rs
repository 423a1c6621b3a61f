//! Eigenvalues of symmetric tridiagonal matrices by bisection with Sturm counts.
//!
//! Barth, Martin, Wilkinson, "Calculation of the eigenvalues of a symmetric tridiagonal matrix by
//! the method of bisection", 1967: the number of eigenvalues below x is the number of negative
//! pivots of the matrix minus x times the identity. A negligible pivot counts as negative, as in
//! LAPACK's `laebz`.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices;
use crate::linear_algebra::tridiagonal::Tridiagonal;
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{groups, linear_id};
use dml_kernel::{Builder, DType, ScalarType};

/// Maximum loop iterations of a launch, unless a single count takes more.
const MAX_ITERATIONS: i64 = 1 << 14;

/// Number of halvings after which the interval is at the limit of the precision.
const fn halvings(compute: ScalarType) -> i64 {
    if matches!(compute, ScalarType::F64) { 56 } else { 27 }
}

/// Eigenvalues in ascending order, `[batch, n]`.
pub fn values(cx: &Context, t: &Tridiagonal) -> Result<View> {
    let (real, n) = (t.diagonal.dtype, t.diagonal.sizes[1]);
    check_loop_iterations(cx, n + 1)?;
    let index = matrices::index_of(&[&t.diagonal]);
    let values = cx.empty(real, &t.diagonal.sizes)?;
    let radii = cx.empty(real, &t.diagonal.sizes)?;
    let each = (MAX_ITERATIONS / n).max(1);
    let all = halvings(real.compute());
    for done in (0..all).step_by(each as usize) {
        let halvings = each.min(all - done);
        let arguments = HalveArguments {
            diagonal: &t.diagonal,
            off_diagonal: &t.off_diagonal,
            bounds: &t.bounds,
            values: &values,
            radii: &radii,
            numel: values.numel(),
            n: n as u32,
            begin: (done == 0).into(),
            halvings: halvings as u32,
        };
        let operations = multiply_adds(real, (values.numel() * n * halvings * 10) as u64);
        let spec = BisectIntervals { dtype: real, index };
        cx.run_with_cost(&spec, &arguments, groups(values.numel() as u64), operations)?;
    }
    Ok(values)
}

/// Halves the intervals that contain eigenvalues. One invocation for each interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BisectIntervals {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    BisectIntervals as s => HalveArguments, HalveParameters {
        diagonal: Input = s.dtype,
        off_diagonal: Input = s.dtype,
        bounds: Input = s.dtype,
        /// The midpoints of the intervals, and half their lengths.
        values: Output = s.dtype,
        radii: Output = s.dtype,
        numel: Index = s.index,
        n: U32,
        /// Not 0 in the first launch, which initialises the intervals.
        begin: U32,
        halvings: U32,
    }
}

impl KernelSpec for BisectIntervals {
    fn name(&self) -> &'static str {
        "halve_intervals"
    }

    fn write<'b>(&self, b: &'b Builder, p: HalveParameters<'b>) {
        let index = self.index;
        let id = linear_id(b, index);
        b.if_(id.lt(p.numel), || {
            let n = p.n.cast(index);
            let matrix = id / n;
            let (first, own) = (matrix * n, (id % n).cast(ScalarType::U32));
            let bound = p.bounds.load(matrix);
            let zero = bound.like(0.0);
            let begin = p.begin.ne(0);
            let value = b.var(begin.select(zero, p.values.load(id)));
            let radius = b.var(begin.select(bound, p.radii.load(id)));
            // The matrix is scaled, so that squares of its elements are not much above 1.
            let tiny = if self.dtype == DType::F64 { 2f64.powi(-1000) } else { 2f64.powi(-110) };
            let least = bound.like(tiny);
            b.for_(0, p.halvings, 1, |_| {
                let x = value.get();
                let (below, pivot, square) = (b.var(b.u32(0)), b.var(bound.like(1.0)), b.var(zero));
                b.for_(0, p.n, 1, |i| {
                    let at = first + i.cast(index);
                    let next = (p.diagonal.load(at) - x) - square.get() / pivot.get();
                    let next = next.abs().lt(least).select(-least, next);
                    below.set(below.get() + next.lt(zero).cast(ScalarType::U32));
                    pivot.set(next);
                    let off_diagonal = p.off_diagonal.load(at);
                    square.set(off_diagonal * off_diagonal);
                });
                let half = radius.get() * 0.5;
                radius.set(half);
                value.set(below.get().gt(own).select(x - half, x + half));
            });
            p.values.store(id, value.get());
            p.radii.store(id, radius.get());
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
            accepted(&BisectIntervals { dtype, index }.build());
        }
    }
}
