//! Complex numbers in the memory of a transform.

use dml_kernel::math::complex::{Complex, mul};
use dml_kernel::{Builder, Pointer, Value};

/// Loads the complex number at an offset, in complex numbers.
pub fn number<'b>(pointer: Pointer<'b>, at: Value<'b>) -> Complex<'b> {
    let parts = pointer.load_chunk(at, 2);
    Complex::new(parts[0], parts[1])
}

/// Loads the number at a position of a Hermitian spectrum of `total` numbers, of which memory has
/// the first half, up to the middle. The others are conjugates; the imaginary parts of the first
/// and the middle one are ignored. `at` converts a position to an offset.
pub fn half<'b>(
    input: Pointer<'b>,
    position: Value<'b>,
    total: Value<'b>,
    at: impl Fn(Value<'b>) -> Value<'b>,
) -> Complex<'b> {
    let low = (position * 2).le(total);
    let z = number(input, at(low.select(position, total - position)));
    let real = position.eq(0) | (position * 2).eq(total);
    Complex::new(z.re, real.select(z.im.like(0.0), low.select(z.im, -z.im)))
}

/// The root with exponent `e` (u32) from the table of [`of_order`](crate::fft::twiddles::of_order).
pub fn root<'b>(b: &'b Builder, roots: Pointer<'b>, bits: Value<'b>, e: Value<'b>) -> Complex<'b> {
    let entries = b.u32(1) << bits;
    let (low, high) = (number(roots, e & (entries - 1)), number(roots, entries + (e >> bits)));
    mul(low, high)
}
