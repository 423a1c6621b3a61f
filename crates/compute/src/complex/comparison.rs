//! Comparisons of complex tensors, which are equal or not, and logic, where a number is true unless
//! it is 0.

use dml_kernel::math::comparison;
use dml_kernel::math::complex::Complex;
use dml_kernel::{ScalarType, Value};

pub fn same<'b>(a: Complex<'b>, b: Complex<'b>) -> Value<'b> {
    comparison::equal(a.re, b.re) & comparison::equal(a.im, b.im)
}

pub fn is_true(z: Complex<'_>) -> Value<'_> {
    z.re.cast(ScalarType::Bool) | z.im.cast(ScalarType::Bool)
}
