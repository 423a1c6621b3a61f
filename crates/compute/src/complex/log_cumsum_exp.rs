//! Running log-sums of exponentials of complex tensors.
//!
//! An invocation walks a line in order, as the CPU does: the imaginary part of a logarithm is one
//! of many, a whole turn apart, and which one comes out depends on the order.

use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Elements of a line that one launch adds up: no launch takes long.
pub const STEPS: i64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub part: DType,
    pub index: ScalarType,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
        /// At first the numbers themselves.
        sums: Output = s.part,
        /// Lines, their length, how far apart a line's elements are, and which of them are added
        /// up.
        place: [Index; 5] = s.index,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "complex_log_cumsum_exp"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let [lines, length, inner, first, end] = p.place;
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

/// `log(e^z + e^w)`; NaN if a part is.
fn log_add_exp<'b>(z: Complex<'b>, w: Complex<'b>) -> Complex<'b> {
    let infinite = |z: Complex<'b>| z.re.is_inf() & z.re.gt(0);
    let both = complex::log(complex::add(complex::exp(z), complex::exp(w)));
    let sum = Complex::select(infinite(z) & infinite(w), both, complex::logaddexp(z, w));
    // Of two zeros the CPU takes the earlier sum.
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
        for (part, index) in
            [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64), (DType::F16, ScalarType::U32)]
        {
            accepted(&Spec { part, index }.build());
        }
    }
}
