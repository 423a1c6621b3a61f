//! Arithmetic of 64-bit integers as pairs of 32-bit words, for adapters that have no 64-bit
//! integers.

use crate::builder::{Builder, Value};
use crate::ir::Compare;
use crate::types::ScalarType;

/// A 64-bit integer as two u32. The operations distinguish signed and unsigned integers.
#[derive(Copy, Clone)]
pub(super) struct Pair<'b> {
    pub(super) low: Value<'b>,
    pub(super) high: Value<'b>,
}

impl<'b> Pair<'b> {
    pub(super) fn new(low: Value<'b>, high: Value<'b>) -> Self {
        Self { low, high }
    }

    /// The constant with these bits.
    pub(super) fn constant(b: &'b Builder, bits: u64) -> Self {
        Self { low: b.u32(bits as u32), high: b.u32((bits >> 32) as u32) }
    }

    /// A 32-bit integer, sign-extended if its type is signed.
    pub(super) fn extended(x: Value<'b>) -> Self {
        let b = x.builder();
        let high = if x.scalar() == ScalarType::I32 { (x >> 31).bitcast(ScalarType::U32) } else { b.u32(0) };
        Self { low: x.bitcast(ScalarType::U32), high }
    }

    fn builder(self) -> &'b Builder {
        self.low.builder()
    }

    fn high_signed(self) -> Value<'b> {
        self.high.bitcast(ScalarType::I32)
    }

    fn is_negative(self) -> Value<'b> {
        self.high_signed().lt(0)
    }

    fn is_zero(self) -> Value<'b> {
        (self.low | self.high).eq(0)
    }

    /// Applies a function to both words.
    pub(super) fn each(self, f: impl Fn(Value<'b>) -> Value<'b>) -> Self {
        Self { low: f(self.low), high: f(self.high) }
    }

    /// Applies a function to the words and those of another pair.
    pub(super) fn zip(self, other: Self, f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Self {
        Self { low: f(self.low, other.low), high: f(self.high, other.high) }
    }

    /// `self` where `condition` is true, `other` elsewhere.
    pub(super) fn select(condition: Value<'b>, yes: Self, no: Self) -> Self {
        yes.zip(no, |yes, no| condition.select(yes, no))
    }

    pub(super) fn add(self, other: Self) -> Self {
        let low = self.low + other.low;
        let carry = low.lt(self.low).cast(ScalarType::U32);
        Self { low, high: self.high + other.high + carry }
    }

    pub(super) fn sub(self, other: Self) -> Self {
        let borrow = self.low.lt(other.low).cast(ScalarType::U32);
        Self { low: self.low - other.low, high: self.high - other.high - borrow }
    }

    pub(super) fn neg(self) -> Self {
        Self::constant(self.builder(), 0).sub(self)
    }

    pub(super) fn mul(self, other: Self) -> Self {
        let crossed = self.low * other.high + self.high * other.low;
        Self { low: self.low * other.low, high: self.low.mul_high(other.low) + crossed }
    }

    /// Shifted left by a constant number of bits from 0 to 63.
    pub(super) fn shl_by(self, bits: u32) -> Self {
        let zero = self.builder().u32(0);
        match bits {
            0 => self,
            1..32 => Self { low: self.low << bits, high: (self.high << bits) | (self.low >> (32 - bits)) },
            32 => Self { low: zero, high: self.low },
            _ => Self { low: zero, high: self.low << (bits - 32) },
        }
    }

    /// Shifted right by a constant number of bits from 0 to 63; an arithmetic shift if `signed`.
    pub(super) fn shr_by(self, bits: u32, signed: bool) -> Self {
        let shift = |by: u32| if by == 0 { self.high } else { self.high_shr(self.builder().u32(by), signed) };
        let fill = if signed { self.high_shr(self.builder().u32(31), true) } else { self.builder().u32(0) };
        match bits {
            0 => self,
            1..32 => Self { low: (self.low >> bits) | (self.high << (32 - bits)), high: shift(bits) },
            _ => Self { low: shift(bits - 32), high: fill },
        }
    }

    /// The high word, shifted right by less than 32 bits.
    fn high_shr(self, bits: Value<'b>, signed: bool) -> Value<'b> {
        if signed {
            (self.high_signed() >> bits.bitcast(ScalarType::I32)).bitcast(ScalarType::U32)
        } else {
            self.high >> bits
        }
    }

    /// Shifted left by a u32 from 0 to 63.
    pub(super) fn shl(self, bits: Value<'b>) -> Self {
        let zero = self.builder().u32(0);
        let by = bits & 31;
        // In two steps, since a shift of a word by 32 bits is undefined.
        let over = (self.low >> 1) >> (31 - by);
        let near = Self { low: self.low << by, high: (self.high << by) | over };
        Self::select(bits.lt(32), near, Self { low: zero, high: near.low })
    }

    /// Shifted right by a u32 from 0 to 63; an arithmetic shift if `signed`.
    pub(super) fn shr(self, bits: Value<'b>, signed: bool) -> Self {
        let b = self.builder();
        let by = bits & 31;
        let over = (self.high << 1) << (31 - by);
        let near = Self { low: (self.low >> by) | over, high: self.high_shr(by, signed) };
        let fill = if signed { self.high_shr(b.u32(31), true) } else { b.u32(0) };
        Self::select(bits.lt(32), near, Self { low: near.high, high: fill })
    }

    /// A comparison.
    pub(super) fn compare(self, op: Compare, other: Self, signed: bool) -> Value<'b> {
        match op {
            Compare::Eq => self.zip(other, |a, b| a ^ b).is_zero(),
            Compare::Ne => !self.zip(other, |a, b| a ^ b).is_zero(),
            Compare::Lt => self.less(other, signed),
            Compare::Gt => other.less(self, signed),
            Compare::Le => !other.less(self, signed),
            Compare::Ge => !self.less(other, signed),
        }
    }

    fn less(self, other: Self, signed: bool) -> Value<'b> {
        let high = if signed { self.high_signed().lt(other.high_signed()) } else { self.high.lt(other.high) };
        high | (self.high.eq(other.high) & self.low.lt(other.low))
    }

    pub(super) fn min(self, other: Self, signed: bool) -> Self {
        Self::select(other.less(self, signed), other, self)
    }

    pub(super) fn max(self, other: Self, signed: bool) -> Self {
        Self::select(self.less(other, signed), other, self)
    }

    fn magnitude(self) -> Self {
        Self::select(self.is_negative(), self.neg(), self)
    }

    pub(super) fn div(self, other: Self, signed: bool) -> Self {
        if !signed {
            return self.divide(other).0;
        }
        let quotient = self.magnitude().divide(other.magnitude()).0;
        Self::select((self.high ^ other.high).bitcast(ScalarType::I32).lt(0), quotient.neg(), quotient)
    }

    /// The remainder, with the dividend's sign.
    pub(super) fn rem(self, other: Self, signed: bool) -> Self {
        if !signed {
            return self.divide(other).1;
        }
        let rest = self.magnitude().divide(other.magnitude()).1;
        Self::select(self.is_negative(), rest.neg(), rest)
    }

    /// Quotient and remainder of unsigned integers. For a zero divisor the quotient is 0 and the
    /// remainder is undefined.
    fn divide(self, by: Self) -> (Self, Self) {
        let b = self.builder();
        let zero = b.u32(0);
        let [quotient_low, quotient_high, rest_low, rest_high] = [zero; 4].map(|zero| b.var(zero));
        b.if_else(
            (self.high | by.high).eq(0) & by.low.ne(0),
            || {
                quotient_low.set(self.low / by.low);
                rest_low.set(self.low % by.low);
            },
            || {
                // Long division, one bit at a time. The remainder's 65th bit is kept as a carry.
                let (low, high) = (b.var(self.low), b.var(self.high));
                b.for_(0, b.u32(64), 1, |_| {
                    let dividend = Self::new(low.get(), high.get());
                    let rest = Self::new(rest_low.get(), rest_high.get());
                    let carry = rest.high >> 31;
                    let rest = Self { low: rest.low << 1 | dividend.high >> 31, high: rest.high << 1 | rest.low >> 31 };
                    let fits = carry.ne(0) | !rest.less(by, false);
                    let rest = Self::select(fits, rest.sub(by), rest);
                    rest_low.set(rest.low);
                    rest_high.set(rest.high);
                    let shifted = dividend.shl_by(1);
                    low.set(shifted.low);
                    high.set(shifted.high);
                    let quotient = Self::new(quotient_low.get(), quotient_high.get()).shl_by(1);
                    quotient_low.set(quotient.low | fits.cast(ScalarType::U32));
                    quotient_high.set(quotient.high);
                });
            },
        );
        (Self::new(quotient_low.get(), quotient_high.get()), Self::new(rest_low.get(), rest_high.get()))
    }

    /// Converts to f32, rounded to nearest even.
    pub(super) fn to_f32(self, signed: bool) -> Value<'b> {
        let b = self.builder();
        let magnitude = if signed { self.magnitude() } else { self };
        let wide = magnitude.high.ne(0);
        let top = wide.select(magnitude.high.highest_bit() + 32, magnitude.low.highest_bit());
        // Normalised: 24 bits of mantissa, then 8 bits and a word for rounding.
        let ahead = magnitude.shl((63 - top) & 63);
        let (mantissa, behind) = (ahead.high >> 8, (ahead.high & 0xff) << 1 | ahead.low.ne(0).cast(ScalarType::U32));
        let up = behind.gt(0x100) | (behind.eq(0x100) & (mantissa & 1).ne(0));
        // The mantissa's leading bit adds 1 to the exponent field, and so does the carry from
        // rounding up a mantissa of all ones.
        let bits = ((top + 126) << 23) + mantissa + up.cast(ScalarType::U32);
        let bits = magnitude.is_zero().select(b.u32(0), bits);
        let sign = if signed { self.high & 0x8000_0000u32 } else { b.u32(0) };
        (bits | sign).bitcast(ScalarType::F32)
    }

    /// Converts an f32, toward zero. A number out of the type's range becomes the smallest signed
    /// number, as in processors' instructions.
    pub(super) fn of_f32(x: Value<'b>, signed: bool) -> Self {
        let b = x.builder();
        let bits = x.bitcast(ScalarType::U32);
        let exponent = (bits >> 23) & 0xff;
        let mantissa = Self::new((bits & 0x7f_ffff) | 0x80_0000, b.u32(0));
        // The number is mantissa * 2^(exponent - 150).
        let large = mantissa.shl((exponent - 150) & 63);
        let small = mantissa.shr((150 - exponent) & 63, false);
        let magnitude = Self::select(exponent.ge(150), large, small);
        let magnitude = Self::select(exponent.lt(127), Self::constant(b, 0), magnitude);
        let value = Self::select(bits.bitcast(ScalarType::I32).lt(0), magnitude.neg(), magnitude);
        let largest = if signed { 189 } else { 190 };
        Self::select(exponent.gt(largest), Self::constant(b, 1 << 63), value)
    }
}
