//! Elementwise functions of the parts of complex numbers.

use crate::normalization::renorm::factor;
use crate::{complex_functions, functions};
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{ScalarType, Value, math};

complex_functions! {
    /// An element of a slice that is scaled down if the slice's norm is above the limit.
    RENORM = "complex_renorm"(z, norm, limit) => z.times(factor(norm.re, limit.re));
}

functions! {
    /// A complex number from its real and imaginary parts.
    JOIN = "complex_join"(re, im) => [re, im];
    /// A complex number from its magnitude and angle, by parts.
    POLAR = "complex_polar"(size, angle) => [size * math::cos(angle), size * math::sin(angle)];
    /// A constant, by parts.
    FILL = "complex_fill"(re, im) => [re, im];
    /// `base` to a complex power, by parts.
    LOGSPACE = "complex_logspace"(re, im, base) => {
        complex::pow(Complex::real(base), Complex::new(re, im))
    };
    /// The 2x2 real matrix of a complex number, row-major.
    BLOCKS = "complex_blocks"(re, im) => [re, im, -im, re];
    /// [`BLOCKS`] of the conjugate.
    BLOCKS_CONJ = "complex_blocks_conj"(re, im) => [re, -im, im, re];
    /// The variance of complex numbers from the variances of their parts.
    VAR = "complex_var"(re, im) => re + im;
    /// The standard deviation of complex numbers from the variances of their parts.
    STD = "complex_std"(re, im) => math::sqrt(re + im);
    /// A real or complex number in another dtype, by its parts.
    CAST = "complex_cast"(..v) => copied(v, false, false);
    /// The negative of [`CAST`].
    COPY_NEG = "complex_copy_neg"(..v) => copied(v, true, false);
    /// The conjugate of [`CAST`].
    COPY_CONJ = "complex_copy_conj"(..v) => copied(v, false, true);
    /// The negative conjugate of [`CAST`].
    COPY_NEG_CONJ = "complex_copy_neg_conj"(..v) => copied(v, true, true);
}

/// The parts of a copy. A copy to bool is whether any part of the number is not 0.
fn copied<'b>(v: &[Value<'b>], negated: bool, conjugated: bool) -> Vec<Value<'b>> {
    if v[0].scalar() == ScalarType::Bool {
        return vec![v[1..].iter().fold(v[0], |any, &part| any | part)];
    }
    let z = v.get(1).map_or_else(|| Complex::real(v[0]), |&im| Complex::new(v[0], im));
    let z = if conjugated { z.conjugate() } else { z };
    let z = if negated && v[0].scalar().is_float() { z.negated() } else { z };
    z.parts()
}
