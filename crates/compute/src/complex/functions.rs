//! Functions of one complex tensor.

use dml_kernel::math::complex::{self, Complex};

/// `sin(pi z) / (pi z)`, 1 of 0.
pub fn sinc(z: Complex<'_>) -> Complex<'_> {
    let angle = z.times(z.re.like(std::f64::consts::PI));
    Complex::select(z.is_zero(), z.like(1.0), complex::div(complex::sin(angle), angle))
}
