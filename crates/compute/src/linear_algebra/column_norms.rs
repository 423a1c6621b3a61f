//! Kernels for norms of columns: the norms, powers of two that scale matrices to norm one, and the
//! scaling.

use crate::complex::parts::as_real;
use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, InputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{THREADS, WorkgroupReduction, larger};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// The norms of the columns of `[batch, rows, n]`, as `[batch, n]`. No square overflows or
/// underflows.
pub fn norms(cx: &Context, x: &View) -> Result<View> {
    run_norms(cx, x, false)
}

/// The largest absolute value in each column, of real and imaginary parts for complex numbers. It
/// is finite if and only if all numbers of the column are.
pub fn extents(cx: &Context, x: &View) -> Result<View> {
    run_norms(cx, x, true)
}

fn run_norms(cx: &Context, x: &View, extents: bool) -> Result<View> {
    let [batch, rows, n] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    let norms = cx.empty(x.dtype.real(), &[batch, n])?;
    let spec = Norms { dtype: x.dtype, index: matrices::index_of(&[x]), extents };
    let arguments =
        NormsArguments { x, norms: &norms, strides: x, batch: batch as u32, rows: rows as u32, n: n as u32 };
    cx.run(&spec, &arguments, matrices::workgroups(batch, n))?;
    Ok(norms)
}

/// For each matrix the power of two, `[batch]`, by which it is to be divided so that its largest
/// column has a norm of about one. If `norms` are extents, which underestimate norms, the result's
/// norm is up to the square root of the number of rows larger. Powers are limited to normal
/// numbers. `failed`, one int32, becomes 1 if a norm is not finite.
pub fn powers(cx: &Context, norms: &View, failed: &View) -> Result<View> {
    let [batch, n] = [norms.sizes[0], norms.sizes[1]];
    let powers = cx.empty(norms.dtype, &[batch])?;
    let spec = Powers { dtype: norms.dtype, index: matrices::index_of(&[norms]) };
    let arguments = PowersArguments { norms, powers: &powers, failed, batch: batch as u32, n: n as u32 };
    cx.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
    Ok(powers)
}

/// Multiplies `x`, which is real or complex and dense, in place by the powers or their reciprocals,
/// each of which applies to an equal part of the elements.
pub fn scale(cx: &Context, x: &View, powers: &View, reciprocal: bool) -> Result<()> {
    let x = &if x.dtype.is_complex() { as_real(x) } else { x.clone() };
    let (numel, each) = (x.numel(), x.numel() / powers.numel());
    let spec = Scale { dtype: x.dtype, index: matrices::index_of(&[x]), reciprocal };
    cx.run_threads(&spec, &ScaleArguments { x, powers, numel, each }, numel as u64)
}

/// One workgroup for each column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Norms {
    dtype: DType,
    index: ScalarType,
    /// Computes the largest number instead of the norm.
    extents: bool,
}

parameters! {
    Norms as s => NormsArguments, NormsParameters {
        x: InputElements = s.dtype,
        norms: Output = s.dtype.real(),
        strides: MatrixStrides = s.index,
        batch: U32,
        rows: U32,
        n: U32,
    }
}

/// The square root of the sum of squares of the values of the workgroup's invocations, as two
/// factors: the largest absolute value and the rest. `each` passes an invocation's values on.
fn length<'b>(b: &'b Builder, compute: ScalarType, each: impl Fn(&dyn Fn(Value<'b>))) -> (Value<'b>, Value<'b>) {
    let joined = WorkgroupReduction::new(b, compute, 1);
    let zero = b.float(compute, 0.0);
    let largest = b.var(zero);
    each(&|x| largest.set(larger(largest.get(), x.abs())));
    joined.join(&[largest], larger);
    let most = joined.result(0);
    let divisor = most.is_zero().select(most.like(1.0), most);
    let sum = b.var(zero);
    each(&|x| {
        let part = x / divisor;
        sum.set(sum.get() + part * part);
    });
    joined.join(&[sum], |x, y| x + y);
    (most, math::sqrt(joined.result(0)))
}

impl KernelSpec for Norms {
    fn name(&self) -> &'static str {
        "column_norms"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: NormsParameters<'b>) {
        let (matrix, column) = matrices::workgroup_tile(b, p.batch, p.n);
        let local = b.local_id(0);
        let (largest, root) = length(b, self.dtype.compute(), |take| {
            b.for_(local, p.rows, THREADS, |row| match p.x.load(p.strides.at(matrix, row, column)) {
                Element::Real(x) => take(x),
                Element::Complex(z) => z.parts().into_iter().for_each(take),
            });
        });
        b.if_(local.eq(0), || {
            let to = matrix.cast(self.index) * p.n.cast(self.index) + column.cast(self.index);
            p.norms.store(to, if self.extents { largest } else { largest * root });
        });
    }
}

/// One workgroup for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Powers {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Powers as s => PowersArguments, PowersParameters {
        norms: Input = s.dtype,
        powers: Output = s.dtype,
        failed: Output = DType::I32,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Powers {
    fn name(&self) -> &'static str {
        "powers_of_norms"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PowersParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let first = matrix.cast(self.index) * p.n.cast(self.index);
        let (largest, root) = length(b, compute, |take| {
            b.for_(local, p.n, THREADS, |column| take(p.norms.load(first + column.cast(self.index))));
        });
        // Keeps the exponent alone, limited so that the power's reciprocal is a normal number, too.
        let (bits, mask, limit) = match compute {
            ScalarType::F32 => (ScalarType::U32, u64::from(f32::INFINITY.to_bits()), 126),
            _ => (ScalarType::U64, f64::INFINITY.to_bits(), 1022),
        };
        let power_of = |x: Value<'b>| (x.bitcast(bits) & b.int(bits, mask)).bitcast(compute);
        let power = power_of(largest) * power_of(root);
        let (least, most) = (power.like(2f64.powi(-limit)), power.like(2f64.powi(limit)));
        let power = power.lt(least).select(least, power.gt(most).select(most, power));
        b.if_(local.eq(0), || {
            p.powers.store(matrix, largest.is_zero().select(largest.like(1.0), power));
            b.if_(!largest.is_finite(), || p.failed.store(0, 1));
        });
    }
}

/// One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scale {
    dtype: DType,
    index: ScalarType,
    reciprocal: bool,
}

parameters! {
    Scale as s => ScaleArguments, ScaleParameters {
        x: Output = s.dtype,
        powers: Input = s.dtype,
        numel: Index = s.index,
        /// Number of elements for each power.
        each: Index = s.index,
    }
}

impl KernelSpec for Scale {
    fn name(&self) -> &'static str {
        "scale_by_powers"
    }

    fn write<'b>(&self, b: &'b Builder, p: ScaleParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let power = p.powers.load(i / p.each);
            let factor = if self.reciprocal { power.like(1.0) / power } else { power };
            p.x.store(i, p.x.load(i) * factor);
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
            accepted(&Norms { dtype, index, extents: true }.build());
            accepted(&Norms { dtype: dtype.complex(), index, extents: false }.build());
            accepted(&Powers { dtype, index }.build());
            accepted(&Scale { dtype, index, reciprocal: dtype == DType::F32 }.build());
        }
    }
}
