//! Functions of two tensors beside arithmetic: angles, lengths, logarithms, signs, bits.

use dml_kernel::math::comparison::maximum;
use dml_kernel::{Value, math};

pub fn times_log<'b>(x: Value<'b>, y: Value<'b>, log: Value<'b>) -> Value<'b> {
    y.is_nan().select(y, x.is_zero().select(x.like(0.0), math::mul(x, log)))
}

/// The magnitude of one float with the sign bit of another.
pub fn copysign<'b>(magnitude: Value<'b>, sign: Value<'b>) -> Value<'b> {
    let bits = magnitude.scalar().unsigned();
    let top = magnitude.builder().int(bits, 1 << (8 * bits.bytes() - 1));
    ((magnitude.bitcast(bits) & !top) | (sign.bitcast(bits) & top)).bitcast(magnitude.scalar())
}

pub fn larger_and_distance<'b>(v: &[Value<'b>]) -> (Value<'b>, Value<'b>) {
    (maximum(v[0], v[1]), (v[0] - v[1]).abs())
}

/// Greatest common divisor, by Euclid.
pub fn divisor<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let builder = a.builder();
    let (x, y) = (builder.var(a.abs()), builder.var(b.abs()));
    builder.while_(
        || y.get().ne(0),
        || {
            let (now, next) = (x.get(), y.get());
            x.set(next);
            y.set(now - next * (now / next));
        },
    );
    x.get()
}
