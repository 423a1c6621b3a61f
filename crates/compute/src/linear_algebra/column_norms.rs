//! Kernels of columns' lengths: the lengths, powers of two that bring matrices to length one, and
//! what multiplies with them.

use crate::complex::parts::as_real;
use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, InputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{Joined, THREADS, larger};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// The lengths of the columns of `[batch, rows, n]`, `[batch, n]`. No square overflows or vanishes.
pub fn norms(cx: &Context, x: &View) -> Result<View> {
    run_norms(cx, x, false)
}

/// The largest absolute values in the columns, of the parts of complex numbers, which are as finite
/// as the numbers are.
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

/// For matrices whose columns have these lengths (or extents) the powers of two, `[batch]`, that
/// they are to be divided by to have a length of about one (or, as extents say too little, of up to
/// the root of their rows times as much), as far as powers go. `failed`, one int32, becomes 1 where
/// a length is not finite.
pub fn powers(cx: &Context, norms: &View, failed: &View) -> Result<View> {
    let [batch, n] = [norms.sizes[0], norms.sizes[1]];
    let powers = cx.empty(norms.dtype, &[batch])?;
    let spec = Powers { dtype: norms.dtype, index: matrices::index_of(&[norms]) };
    let arguments = PowersArguments { norms, powers: &powers, failed, batch: batch as u32, n: n as u32 };
    cx.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
    Ok(powers)
}

/// Multiplies `x`, real or complex and without gaps, in place, as many elements of it after another
/// as `powers` goes into, with one of the powers, or with its reciprocal.
pub fn scale(cx: &Context, x: &View, powers: &View, reciprocal: bool) -> Result<()> {
    let x = &if x.dtype.is_complex() { as_real(x) } else { x.clone() };
    let (numel, each) = (x.numel(), x.numel() / powers.numel());
    let spec = Scale { dtype: x.dtype, index: matrices::index_of(&[x]), reciprocal };
    cx.run_threads(&spec, &ScaleArguments { x, powers, numel, each }, numel as u64)
}

/// A workgroup takes a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Norms {
    dtype: DType,
    index: ScalarType,
    /// Their largest numbers are wanted, not their lengths.
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

/// The root of the sum of squares of values that the workgroup's invocations have, taken apart into
/// the largest of them and the rest. `each` hands over an invocation's own.
fn length<'b>(b: &'b Builder, compute: ScalarType, each: impl Fn(&dyn Fn(Value<'b>))) -> (Value<'b>, Value<'b>) {
    let joined = Joined::new(b, compute, 1);
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
        let (matrix, column) = matrices::own_tile(b, p.batch, p.n);
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

/// A workgroup takes a matrix.
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
        let (matrix, _) = matrices::own_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let first = matrix.cast(self.index) * p.n.cast(self.index);
        let (largest, root) = length(b, compute, |take| {
            b.for_(local, p.n, THREADS, |column| take(p.norms.load(first + column.cast(self.index))));
        });
        // The exponents alone. The power's reciprocal is a normal number, too.
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

/// An invocation takes an element.
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
        /// Elements of a power.
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
