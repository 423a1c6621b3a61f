//! Software arithmetic of 64-bit floats on their bits, in 64-bit integers, according to IEEE 754:
//! rounded to nearest even, with subnormal numbers. The method is the textbook's (Koren, "Computer
//! Arithmetic Algorithms", chapter 4): significands are extended by three bits (guard, round and
//! sticky); the sticky bit is set if any lower bit was lost.

use crate::builder::{Builder, Value};
use crate::types::ScalarType;

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << FRACTION_BITS;
const NAN: u64 = INFINITY | 1 << (FRACTION_BITS - 1);
const FRACTION_BITS: u32 = 52;
const FRACTION: u64 = (1 << FRACTION_BITS) - 1;
/// The position of a significand's leading bit, with the three extra bits.
const FIRST: u32 = FRACTION_BITS + 3;
const BIAS: u32 = 1023;

/// A 64-bit float as its bits, a u64.
#[derive(Copy, Clone)]
pub(super) struct Double<'b> {
    pub(super) bits: Value<'b>,
}

impl<'b> Double<'b> {
    pub(super) fn new(bits: Value<'b>) -> Self {
        Self { bits }
    }

    fn builder(self) -> &'b Builder {
        self.bits.builder()
    }

    fn magnitude(self) -> Value<'b> {
        self.bits & (SIGN - 1)
    }

    fn sign(self) -> Value<'b> {
        self.bits & SIGN
    }

    /// The exponent field, as an i32.
    fn exponent(self) -> Value<'b> {
        (self.magnitude() >> FRACTION_BITS).cast(ScalarType::I32)
    }

    fn is_nan(self) -> Value<'b> {
        self.magnitude().gt(INFINITY)
    }

    /// The exponent field, which for a subnormal number is that of the smallest normal one, and the
    /// significand as an integer.
    fn parts(self) -> (Value<'b>, Value<'b>) {
        let b = self.builder();
        let (exponent, fraction) = (self.exponent(), self.bits & FRACTION);
        let normal = exponent.ne(0);
        (normal.select(exponent, b.i32(1)), fraction | normal.select(long(b, FRACTION + 1), long(b, 0)))
    }

    /// [`parts`](Self::parts), normalised: the leading bit of the significand is set, and the
    /// exponent may be below 1. Undefined for 0.
    fn normalized(self) -> (Value<'b>, Value<'b>) {
        let (exponent, significand) = self.parts();
        let ahead = FRACTION_BITS - highest_bit(significand);
        (exponent - ahead.bitcast(ScalarType::I32), shl(significand, ahead & 63))
    }

    // ---- signs

    pub(super) fn neg(self) -> Self {
        Self::new(self.bits ^ SIGN)
    }

    pub(super) fn abs(self) -> Self {
        Self::new(self.magnitude())
    }

    // ---- sums and products

    pub(super) fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }

    pub(super) fn add(self, other: Self) -> Self {
        let b = self.builder();
        let swap = self.magnitude().lt(other.magnitude());
        let large = Self::new(swap.select(other.bits, self.bits));
        let small = Self::new(swap.select(self.bits, other.bits));
        let ((high, x), (low, y)) = (large.parts(), small.parts());
        let (x, y) = (x << 3, shr_keeping(y << 3, high - low));
        let opposite = (large.bits ^ small.bits).bitcast(ScalarType::I64).lt(0);
        let sum = opposite.select(x - y, x + y);
        // Normalises a sum with one bit more, or with fewer bits: it is shifted up as far as the
        // exponent allows.
        let top = highest_bit(sum).bitcast(ScalarType::I32);
        let carry = top.gt(FIRST);
        let by = (b.i32(FIRST as i32) - top).min(high - 1).max(0);
        let significand = carry.select((sum >> 1) | (sum & 1), shl(sum, by.bitcast(ScalarType::U32)));
        let exponent = carry.select(high + 1, high - by);
        let rounded = large.sign() | packed(exponent, significand);
        // The sum of numbers that cancel is 0; the sum of zeros of one sign is that zero.
        let vanishes = sum.eq(0);
        let bits = vanishes.select(opposite.select(long(b, 0), large.sign()), rounded);
        let both = small.magnitude().eq(INFINITY) & opposite;
        let special = (large.is_nan() | both).select(long(b, NAN), large.bits);
        Self::new(large.magnitude().ge(INFINITY).select(special, bits))
    }

    pub(super) fn mul(self, other: Self) -> Self {
        let b = self.builder();
        let sign = (self.bits ^ other.bits) & SIGN;
        let ((i, x), (j, y)) = (self.normalized(), other.normalized());
        let (high, low) = wide_product(x, y);
        // The product has 105 or 106 bits, of which the leading 56 or 57 are kept.
        let product = (high << (64 - 49)) | (low >> 49) | (low << 15).ne(0).cast(ScalarType::U64);
        let carry = product.ge(2u64 << FIRST);
        let product = carry.select((product >> 1) | (product & 1), product);
        let exponent = i + j - BIAS as i32 + carry.cast(ScalarType::I32);
        // Below the smallest normal number, fewer bits are kept.
        let below = (b.i32(1) - exponent).max(0);
        let rounded = packed(exponent.max(1), shr_keeping(product, below));
        let zero = self.magnitude().eq(0) | other.magnitude().eq(0);
        let infinite = self.magnitude().eq(INFINITY) | other.magnitude().eq(INFINITY);
        let nan = self.is_nan() | other.is_nan() | (zero & infinite);
        let finite = zero.select(long(b, 0), rounded);
        let magnitude = nan.select(long(b, NAN), infinite.select(long(b, INFINITY), finite));
        Self::new(sign | magnitude)
    }

    // ---- comparisons

    pub(super) fn equal(self, other: Self) -> Value<'b> {
        let zeros = ((self.bits | other.bits) << 1).eq(0);
        (self.bits.eq(other.bits) | zeros) & !self.is_nan() & !other.is_nan()
    }

    pub(super) fn less(self, other: Self) -> Value<'b> {
        let zeros = ((self.bits | other.bits) << 1).eq(0);
        self.order().lt(other.order()) & !zeros & !self.is_nan() & !other.is_nan()
    }

    pub(super) fn less_or_equal(self, other: Self) -> Value<'b> {
        self.less(other) | self.equal(other)
    }

    /// An i64 with the order of the numbers; -0 is just below 0.
    fn order(self) -> Value<'b> {
        let bits = self.bits.bitcast(ScalarType::I64);
        bits.lt(0).select(!(bits & i64::MAX), bits)
    }

    // ---- integers among the numbers

    /// The mask of the fraction bits of a magnitude of 1 or more.
    fn behind_point(self) -> Value<'b> {
        let whole = (self.exponent() - BIAS as i32).max(0).min(FRACTION_BITS as i32);
        shr(long(self.builder(), FRACTION), whole.bitcast(ScalarType::U32))
    }

    fn is_below_one(self) -> Value<'b> {
        self.exponent().lt(BIAS as i32)
    }

    pub(super) fn trunc(self) -> Self {
        let whole = self.bits & !self.behind_point();
        Self::new(self.is_below_one().select(self.sign(), whole))
    }

    pub(super) fn floor(self) -> Self {
        self.away(self.sign().ne(0))
    }

    pub(super) fn ceil(self) -> Self {
        self.away(self.sign().eq(0))
    }

    /// Rounds to an integer: away from 0 if `away`, else toward 0.
    fn away(self, away: Value<'b>) -> Self {
        let (b, mask) = (self.builder(), self.behind_point());
        let large = self.exponent().ge((BIAS + FRACTION_BITS) as i32);
        // A carry out of the fraction increments the exponent, which gives the next number.
        let beyond = self.bits + (away & !large).select(mask, long(b, 0));
        let one = (away & self.magnitude().ne(0)).select(long(b, 1f64.to_bits()), long(b, 0));
        Self::new(self.is_below_one().select(self.sign() | one, beyond & !mask))
    }

    /// Rounds to the nearest integer, halves to even.
    pub(super) fn round(self) -> Self {
        let (b, mask) = (self.builder(), self.behind_point());
        let unit = mask + 1; // The parity of the integer part.
        let odd = (self.bits & unit).ne(0);
        let odd = odd | self.exponent().eq(BIAS as i32); // 1 is odd, and its units bit is the implicit one.
        let less = (unit >> 1) - odd.select(long(b, 0), long(b, 1));
        let large = self.exponent().ge((BIAS + FRACTION_BITS) as i32);
        let nearest = (self.bits + large.select(long(b, 0), less)) & !mask;
        let one = self.magnitude().gt(0.5f64.to_bits()).select(long(b, 1f64.to_bits()), long(b, 0));
        Self::new(self.is_below_one().select(self.sign() | one, nearest))
    }

    // ---- conversions

    pub(super) fn of_f32(x: Value<'b>) -> Self {
        let b = x.builder();
        let bits = x.bitcast(ScalarType::U32);
        let sign = (bits & 0x8000_0000u32).cast(ScalarType::U64) << 32;
        let magnitude = bits & 0x7fff_ffffu32;
        // The fraction of a subnormal number is shifted up to the leading bit of a normal one.
        let subnormal = magnitude.lt(0x80_0000u32);
        let ahead = subnormal.select(b.u32(23) - magnitude.highest_bit(), b.u32(0)) & 31;
        let fraction = ((magnitude << ahead) & 0x7f_ffffu32).cast(ScalarType::U64) << (FRACTION_BITS - 23);
        let exponent = subnormal.select(b.u32(1) - ahead, magnitude >> 23) + (BIAS - 127);
        let exponent = magnitude.ge(0x7f80_0000u32).select(b.u32(0x7ff), exponent);
        let number = (exponent.cast(ScalarType::U64) << FRACTION_BITS) | fraction;
        Self::new(sign | magnitude.eq(0).select(long(b, 0), number))
    }

    pub(super) fn to_f32(self) -> Value<'b> {
        let b = self.builder();
        let sign = (self.bits >> 32).cast(ScalarType::U32) & 0x8000_0000u32;
        let (exponent, significand) = self.parts();
        let exponent = exponent - (BIAS as i32 - 127);
        let below = (b.i32(1) - exponent).max(0);
        // 24 bits, and the three extra ones.
        let kept = shr_keeping(significand, below + 26).cast(ScalarType::U32);
        let last = kept & 7;
        let up = last.gt(4) | (last.eq(4) & (kept & 8).ne(0));
        let significand = (kept >> 3) + up.cast(ScalarType::U32);
        let bits = ((exponent.max(1).min(0xff) - 1).bitcast(ScalarType::U32) << 23) + significand;
        let bits = self.is_nan().select(b.u32(0x7fc0_0000), bits.min(0x7f80_0000u32));
        (sign | bits).bitcast(ScalarType::F32)
    }

    /// Converts an integer of any type.
    pub(super) fn of_integer(x: Value<'b>) -> Self {
        let b = x.builder();
        let (magnitude, sign) = if x.scalar().is_signed() {
            let wide = x.cast(ScalarType::I64);
            let negative = wide.lt(0);
            (wide.abs().bitcast(ScalarType::U64), negative.select(long(b, SIGN), long(b, 0)))
        } else {
            (x.cast(ScalarType::U64), long(b, 0))
        };
        let top = highest_bit(magnitude);
        let ahead = shl(magnitude, (b.u32(63) - top) & 63);
        let significand = (ahead >> (63 - FIRST)) | (ahead << (FIRST + 1)).ne(0).cast(ScalarType::U64);
        let number = sign | packed((top + BIAS).bitcast(ScalarType::I32), significand);
        Self::new(magnitude.eq(0).select(long(b, 0), number))
    }

    /// Converts to an integer, toward zero. A number out of a signed type's range becomes the
    /// type's smallest number, as in processors' instructions.
    pub(super) fn to_integer(self, scalar: ScalarType) -> Value<'b> {
        let b = self.builder();
        let (exponent, significand) = self.parts();
        let whole = exponent - (BIAS + FRACTION_BITS) as i32;
        let left = shl(significand, whole.max(0).min(63).bitcast(ScalarType::U32));
        let right = shr(significand, (-whole).max(0).min(63).bitcast(ScalarType::U32));
        let magnitude = whole.lt(0).select(right, left);
        let value = self.sign().ne(0).select(-magnitude, magnitude);
        let most = if scalar == ScalarType::U64 { 64 } else { 63 };
        let value = exponent.ge(BIAS as i32 + most).select(long(b, SIGN), value);
        match scalar {
            ScalarType::I32 => {
                let wide = value.bitcast(ScalarType::I64);
                let narrow = wide.cast(ScalarType::I32);
                narrow.cast(ScalarType::I64).eq(wide).select(narrow, b.i32(i32::MIN))
            }
            ScalarType::U32 => value.cast(ScalarType::U32),
            scalar => value.bitcast(scalar),
        }
    }
}

fn long(b: &Builder, x: u64) -> Value<'_> {
    b.int(ScalarType::U64, x)
}

/// A u64 shifted by a u32 below 64.
fn shl<'b>(x: Value<'b>, by: Value<'b>) -> Value<'b> {
    x << by.cast(ScalarType::U64)
}

fn shr<'b>(x: Value<'b>, by: Value<'b>) -> Value<'b> {
    x >> by.cast(ScalarType::U64)
}

/// `x >> by` for any `by` of 0 or more (i32); the last bit is also set if any bit was lost
/// (sticky).
fn shr_keeping<'b>(x: Value<'b>, by: Value<'b>) -> Value<'b> {
    let by = by.min(63).bitcast(ScalarType::U32);
    let shifted = shr(x, by);
    shifted | shl(shifted, by).ne(x).cast(ScalarType::U64)
}

/// Index of the highest set bit of a u64, as a u32; all ones for 0.
fn highest_bit(x: Value<'_>) -> Value<'_> {
    let (low, high) = (x.cast(ScalarType::U32), (x >> 32).cast(ScalarType::U32));
    high.ne(0).select(high.highest_bit() + 32, low.highest_bit())
}

/// The 128-bit product of two u64 of at most 53 bits, the high half first.
fn wide_product<'b>(x: Value<'b>, y: Value<'b>) -> (Value<'b>, Value<'b>) {
    let word = |x: Value<'b>| (x.cast(ScalarType::U32).cast(ScalarType::U64), x >> 32);
    let ((x0, x1), (y0, y1)) = (word(x), word(y));
    let low = x0 * y0;
    let middle = x1 * y0 + x0 * y1 + (low >> 32);
    (x1 * y1 + (middle >> 32), (middle << 32) | low.cast(ScalarType::U32).cast(ScalarType::U64))
}

/// The bits of the number with this exponent field (i32, at least 1) and this significand, whose
/// leading bit is [`FIRST`], or a lower bit if the exponent is 1. Infinity beyond the largest
/// number.
fn packed<'b>(exponent: Value<'b>, significand: Value<'b>) -> Value<'b> {
    let last = significand & 7;
    let up = last.gt(4) | (last.eq(4) & (significand & 8).ne(0));
    // The significand's leading bit adds 1 to the exponent field, and so does the carry from
    // rounding up a significand of all ones.
    let exponent = (exponent - 1).bitcast(ScalarType::U32).cast(ScalarType::U64) << FRACTION_BITS;
    (exponent + (significand >> 3) + up.cast(ScalarType::U64)).min(INFINITY)
}
