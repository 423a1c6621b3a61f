//! Cumulative log-sum-exp of complex tensors.
//!
//! An invocation processes a line sequentially, as the CPU does: the imaginary part of a logarithm
//! is defined up to multiples of a full turn, and which one results depends on the order.

use crate::complex::parts::as_real;
use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Elements of a line that one launch accumulates, so that no launch takes long.
const STEPS: i64 = 4096;

/// Adds up the numbers of each line along a dimension, in place: `sums` is complex and contiguous.
pub fn log_cumsum_exp(cx: &Context, sums: &View, dim: usize) -> Result<()> {
    if sums.numel() == 0 || sums.dim() == 0 {
        return Ok(());
    }
    let (length, inner) = (sums.sizes[dim], sums.sizes[dim + 1..].iter().product::<i64>());
    let lines = sums.numel() / length;
    let spec = Spec { real_dtype: sums.dtype.real(), index: index_type(2 * sums.numel()) };
    for first in (0..length).step_by(STEPS as usize) {
        let sizes = [lines, length, inner, first, length.min(first + STEPS)];
        cx.run_threads(&spec, &Arguments { sums: &as_real(sums), sizes }, lines as u64)?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    real_dtype: DType,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        /// The results. The first launch finds the operand's numbers in it.
        sums: Output = s.real_dtype,
        /// Number of lines, their length, the stride along a line, and the range of elements to
        /// accumulate.
        sizes: [Index; 5] = s.index,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "complex_log_cumsum_exp"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let [lines, length, inner, first, end] = p.sizes;
        let line = linear_id(b, self.index);
        b.if_(line.lt(lines), || {
            let begin = (line / inner) * length * inner + line % inner;
            let at = |i: Value<'b>| (begin + i * inner) * 2;
            let load = |i: Value<'b>| Complex::new(p.sums.load(at(i)), p.sums.load(at(i) + 1));
            let is_first = first.eq(0);
            let before = load(is_first.select(first, first - 1));
            let re = b.var(is_first.select(before.re.like(f64::NEG_INFINITY), before.re));
            let im = b.var(is_first.select(before.im.like(0.0), before.im));
            b.for_(first, end, 1, |i| {
                let sum = log_add_exp(load(i), Complex::new(re.get(), im.get()));
                re.set(sum.re);
                im.set(sum.im);
                p.sums.store(at(i), sum.re);
                p.sums.store(at(i) + 1, sum.im);
            });
        });
    }
}

/// `log(e^z + e^w)`; NaN if a part of an operand is.
fn log_add_exp<'b>(z: Complex<'b>, w: Complex<'b>) -> Complex<'b> {
    let infinite = |z: Complex<'b>| z.re.is_inf() & z.re.gt(0);
    let both = complex::log(complex::add(complex::exp(z), complex::exp(w)));
    let sum = Complex::select(infinite(z) & infinite(w), both, complex::logaddexp(z, w));
    // If both exponentials are zero, the result is the earlier sum, as on the CPU.
    let zero = |z: Complex<'b>| z.re.is_inf() & z.re.lt(0);
    let sum = Complex::select(zero(z) & zero(w), w, sum);
    Complex::select(z.is_nan() | w.is_nan(), Complex::new(z.re.like(f64::NAN), z.re.like(f64::NAN)), sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (real_dtype, index) in
            [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64), (DType::F16, ScalarType::U32)]
        {
            accepted(&Spec { real_dtype, index }.build());
        }
    }
}
