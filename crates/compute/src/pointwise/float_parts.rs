//! Operators on the representation of floats: the neighbouring number, significand and exponent.

use crate::functions;
use crate::pointwise::binary::copysign;
use crate::pointwise::function::Function;
use dml_kernel::{DType, ScalarType, Value};

functions! {
    /// The number next to `x` in the direction of `y`.
    NEXTAFTER = "nextafter"(x, y) => next(x, y, DType::F32);
    /// [`NEXTAFTER`] among the numbers of float16.
    NEXTAFTER_F16 = "nextafter_f16"(x, y) => next(x, y, DType::F16);
    /// [`NEXTAFTER`] among the numbers of bfloat16.
    NEXTAFTER_BF16 = "nextafter_bf16"(x, y) => next(x, y, DType::BF16);
    /// Mantissa and exponent: `x = mantissa * 2^exponent`, the mantissa's magnitude 1/2 to 1.
    FREXP = "frexp"(x) => parts(x);
    /// `x * 2^exponent`, rounded once.
    LDEXP = "ldexp"(x, exponent) => scaled(x, exponent);
}

/// [`NEXTAFTER`] among the numbers of a dtype.
pub fn next_after(dtype: DType) -> &'static Function {
    match dtype {
        DType::F16 => &NEXTAFTER_F16,
        DType::BF16 => &NEXTAFTER_BF16,
        _ => &NEXTAFTER,
    }
}

/// The number next to `from` in the direction of `to`, among those of the dtype. Numbers of one
/// sign are in the order of their bits.
fn next<'b>(from: Value<'b>, to: Value<'b>, dtype: DType) -> Value<'b> {
    let b = from.builder();
    let signed = if from.scalar() == ScalarType::F64 { ScalarType::I64 } else { ScalarType::I32 };
    let magnitude_bits = (1u64 << (8 * signed.bytes() - 1)) - 1;
    // Integers in the order of the numbers.
    let ordered = |x: Value<'b>| {
        let bits = x.bitcast(signed);
        let magnitude = bits & b.int(signed, magnitude_bits);
        bits.lt(0).select(-magnitude, magnitude)
    };
    // The distance of neighbours in bits of the compute type. Below 2^-14 those of f16 are 2^-24
    // apart.
    let unit = b.int(
        signed,
        match dtype {
            DType::F16 => 1 << 13,
            DType::BF16 => 1 << 16,
            _ => 1,
        },
    );
    let (start, end) = (ordered(from), ordered(to));
    let up = end.gt(start);
    let stepped = start + up.select(unit, -unit);
    let negative = stepped.lt(0) | (stepped.eq(0) & from.bitcast(signed).lt(0));
    let magnitude = stepped.lt(0).select(-stepped, stepped);
    let sign = b.int(signed, magnitude_bits + 1);
    let result = (magnitude | negative.select(sign, 0)).bitcast(from.scalar());
    let result = if dtype == DType::F16 {
        let smallest = 2f64.powi(-24);
        let edge = 2f64.powi(-14);
        let outward = up ^ from.lt(0);
        let small = from.abs().lt(edge) | (from.abs().eq(edge) & !outward) | from.eq(0);
        let moved = from + up.select(from.like(smallest), -smallest);
        let zero = copysign(from.like(0.0), from);
        let result = small.select(moved.eq(0).select(zero, moved), result);
        from.is_inf().select(copysign(from.like(65504.0), from), result)
    } else {
        result
    };
    let result = start.eq(end).select(to, result);
    from.is_nan().select(from, to.is_nan().select(to, result))
}

/// The mantissa, and the exponent as i32. Zero, infinities and NaN are their own mantissa, with
/// exponent 0.
fn parts(x: Value<'_>) -> Vec<Value<'_>> {
    let b = x.builder();
    let bits_type = x.scalar().unsigned();
    let (digits, bias) = if x.scalar() == ScalarType::F64 { (52, 1023) } else { (23, 127) };
    let int = |n: u64| b.int(bits_type, n);
    let width = 8 * u64::from(bits_type.bytes());
    let bits = x.bitcast(bits_type);
    let sign = bits & int(1 << (width - 1));
    let magnitude = bits & int((1 << (width - 1)) - 1);
    // A subnormal number gets a leading one, which is subtracted again: no arithmetic meets the
    // number itself.
    let subnormal = magnitude.lt(int(1 << digits));
    let one = int(bias << digits);
    let lifted = ((magnitude | one).bitcast(x.scalar()) - 1.0).bitcast(bits_type);
    let normal = subnormal.select(lifted, magnitude);
    let field = (normal >> int(digits)).cast(ScalarType::I32);
    let exponent = field - (bias as i32 - 1) - subnormal.select(b.i32(bias as i32 - 1), 0);
    let significand = (normal & int((1 << digits) - 1)) | int((bias - 1) << digits);
    let plain = magnitude.ne(0) & magnitude.lt(int((2 * bias + 1) << digits));
    vec![plain.select((significand | sign).bitcast(x.scalar()), x), plain.select(exponent, 0)]
}

/// `x * 2^k` for a whole number k, subnormal operands and results too.
fn scaled<'b>(x: Value<'b>, k: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let bits_type = x.scalar().unsigned();
    let (digits, bias) = if x.scalar() == ScalarType::F64 { (52, 1023) } else { (23, 127) };
    let parts = parts(x);
    let (mantissa, exponent) = (parts[0], parts[1]);
    // From the smallest number to beyond the largest, and back.
    let most = f64::from(2 * bias + digits + 8);
    let k = k.max(-most).min(most).cast(ScalarType::I32) + exponent;
    let bits = mantissa.bitcast(bits_type);
    let sign = bits & b.int(bits_type, 1 << (8 * u64::from(bits_type.bytes()) - 1));
    let shifted = |by: Value<'b>| (bits ^ sign) + (by.cast(bits_type) << b.int(bits_type, digits as u64));
    let infinity = b.int(bits_type, (2 * bias as u64 + 1) << digits);
    // The smallest numbers are multiples of a power of two, and their bits say how many.
    let lowest = bias - 1 + digits;
    let units = shifted(k.max(-(lowest + 3)) + lowest).bitcast(x.scalar()).round().cast(bits_type);
    let magnitude = k.gt(bias + 1).select(infinity, k.lt(2 - bias).select(units, shifted(k)));
    let plain = x.is_zero() | x.is_inf() | x.is_nan();
    plain.select(x, (magnitude | sign).bitcast(x.scalar()))
}
