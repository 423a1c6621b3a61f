//! 8-bit floats, a storage format: kernels convert them and compute in f32.
//!
//! Source: P. Micikevicius et al., "FP8 formats for deep learning", 2022 (E4M3, without infinities;
//! E5M2); B. Noune et al., "8-bit numerical formats for deep neural networks", 2022 (the variants
//! with one zero and one NaN, which has the bits of -0).
//!
//! Conversions round to nearest even.

use crate::builder::Value;
use crate::dtype::DType;
use crate::types::ScalarType;

/// A format: a sign bit, an exponent field and `mantissa` bits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Format {
    mantissa: u32,
    bias: u32,
    special: Special,
}

/// The special values of a format.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Special {
    /// Infinities, and NaN in the encodings above them.
    Infinities,
    /// No infinities; NaN has all bits set except the sign.
    Nan,
    /// No infinities; NaN has the encoding of -0.
    NoNegativeZero,
}

const SIGN: u32 = 0x80;

impl Format {
    /// The format of a dtype; `None` unless the dtype is an 8-bit float.
    pub const fn of(dtype: DType) -> Option<Format> {
        let (mantissa, bias, special) = match dtype {
            DType::F8E4M3FN => (3, 7, Special::Nan),
            DType::F8E5M2 => (2, 15, Special::Infinities),
            DType::F8E4M3FNUZ => (3, 8, Special::NoNegativeZero),
            DType::F8E5M2FNUZ => (2, 16, Special::NoNegativeZero),
            _ => return None,
        };
        Some(Format { mantissa, bias, special })
    }

    /// The least magnitude, as f32 bits, that rounding of the mantissa alone does not bring to a
    /// finite number: one binade above the largest number's, or the encoding of NaN in that binade.
    const fn beyond(self) -> u32 {
        match self.special {
            Special::Infinities => (127 + 16) << 23,
            Special::Nan => 480f32.to_bits(),
            // The exponent fields of both formats use all values, so the largest exponent is 1 less
            // than the field's largest value.
            Special::NoNegativeZero => (127 + (SIGN >> self.mantissa) - self.bias) << 23,
        }
    }

    /// The encodings of a magnitude that is too large and of NaN, without the sign.
    const fn overflow(self) -> [u32; 2] {
        match self.special {
            Special::Infinities => [0x7c, 0x7f],
            Special::Nan => [0x7f, 0x7f],
            Special::NoNegativeZero => [SIGN, SIGN],
        }
    }

    /// The least encoding without a sign that is not a finite number.
    const fn first_special(self) -> u32 {
        match self.special {
            Special::Infinities => 0x7c,
            Special::Nan => 0x7f,
            Special::NoNegativeZero => SIGN,
        }
    }

    /// The largest encoding of a negative number.
    pub const fn last_negative(self) -> u32 {
        match self.special {
            Special::Infinities => SIGN + 0x7c,
            _ => SIGN + self.first_special() - 1,
        }
    }

    /// The largest number.
    pub fn largest(self) -> f64 {
        self.number(self.first_special() as u8 - 1)
    }

    /// Whether there are infinities.
    pub const fn has_infinities(self) -> bool {
        matches!(self.special, Special::Infinities)
    }

    /// Adding this number to a magnitude below the least normal number makes f32's addition round
    /// at this format's last bit.
    fn aligner(self) -> f32 {
        2f32.powi(24 - self.bias as i32 - self.mantissa as i32)
    }

    /// The word of an element as f32.
    pub fn decode(self, word: Value<'_>) -> Value<'_> {
        let b = word.builder();
        let shift = 23 - self.mantissa;
        let (sign, magnitude) = ((word & SIGN) << 24, word & 0x7f);
        let normal = (magnitude << shift) + ((127 - self.bias) << 23);
        // A subnormal number is a multiple of the least one. The product is exact, and no f32
        // subnormal is involved.
        let least = 2f64.powi(1 - self.bias as i32 - self.mantissa as i32);
        let subnormal = (magnitude.cast(ScalarType::F32) * least).bitcast(ScalarType::U32);
        let number = magnitude.lt(1 << self.mantissa).select(subnormal, normal);
        let bits = match self.special {
            Special::NoNegativeZero => word.eq(SIGN).select(b.u32(0x7fc0_0000), number | sign),
            _ => {
                let special = (magnitude << shift) | 0x7f80_0000u32;
                magnitude.ge(self.first_special()).select(special, number) | sign
            }
        };
        bits.bitcast(ScalarType::F32)
    }

    /// An f32 as the word of an element.
    pub fn encode(self, x: Value<'_>) -> Value<'_> {
        let b = x.builder();
        let shift = 23 - self.mantissa;
        let bits = x.bitcast(ScalarType::U32);
        let (sign, magnitude) = ((bits >> 24) & SIGN, bits & 0x7fff_ffffu32);
        let odd = (magnitude >> shift) & 1;
        let normal = (magnitude + ((1u32 << (shift - 1)) - 1) + odd - ((127 - self.bias) << 23)) >> shift;
        let aligner = self.aligner();
        let aligned = (magnitude.bitcast(ScalarType::F32) + f64::from(aligner)).bitcast(ScalarType::U32);
        let number = magnitude.lt((128 - self.bias) << 23).select(aligned - aligner.to_bits(), normal);
        let [large, nan] = self.overflow();
        let special = magnitude.gt(0x7f80_0000u32).select(b.u32(nan), large);
        let word = magnitude.ge(self.beyond()).select(special, number);
        match self.special {
            Special::NoNegativeZero => word.eq(0).select(word, word | sign),
            _ => word | sign,
        }
    }

    /// The number that an encoding represents.
    pub fn number(self, bits: u8) -> f64 {
        let (bits, shift) = (u32::from(bits), self.mantissa);
        let magnitude = bits & 0x7f;
        let sign = if bits & SIGN == 0 { 1.0 } else { -1.0 };
        let (exponent, fraction) = (magnitude >> shift, magnitude & ((1 << shift) - 1));
        let power = |exponent: u32| 2f64.powi(exponent as i32 - self.bias as i32 - shift as i32);
        match self.special {
            Special::NoNegativeZero if bits == SIGN => f64::NAN,
            Special::Infinities if magnitude == 0x7c => sign * f64::INFINITY,
            Special::Infinities | Special::Nan if magnitude >= self.first_special() => f64::NAN,
            _ if exponent == 0 => sign * f64::from(fraction) * power(1),
            _ => sign * f64::from(fraction + (1 << shift)) * power(exponent),
        }
    }

    /// The encoding of a number, which is first rounded to f32.
    pub fn bits(self, x: f64) -> u8 {
        let bits = (x as f32).to_bits();
        let shift = 23 - self.mantissa;
        let (sign, magnitude) = ((bits >> 24) & SIGN, bits & 0x7fff_ffff);
        let [large, nan] = self.overflow();
        let word = if magnitude > 0x7f80_0000 {
            nan
        } else if magnitude >= self.beyond() {
            large
        } else if magnitude < (128 - self.bias) << 23 {
            let aligner = self.aligner();
            (f32::from_bits(magnitude) + aligner).to_bits() - aligner.to_bits()
        } else {
            let odd = (magnitude >> shift) & 1;
            (magnitude + ((1 << (shift - 1)) - 1) + odd - ((127 - self.bias) << 23)) >> shift
        };
        let signed = if self.special == Special::NoNegativeZero && word == 0 { word } else { word | sign };
        signed as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_survives_the_round_trip() {
        for dtype in DType::FLOAT8 {
            let format = Format::of(dtype).expect("a float of 8 bits");
            for bits in 0..=u8::MAX {
                let x = format.number(bits);
                let back = format.bits(x);
                assert!(
                    x.is_nan() && format.number(back).is_nan() || back == bits,
                    "{dtype} {bits:#x}: {x}, {back:#x}"
                );
            }
        }
    }

    #[test]
    fn the_ends_of_the_ranges() {
        let format = |dtype| Format::of(dtype).expect("a float of 8 bits");
        let e4m3 = format(DType::F8E4M3FN);
        assert_eq!([464.0, 465.0, 1e9, -448.0].map(|x| e4m3.bits(x)), [0x7e, 0x7f, 0x7f, 0xfe]);
        let e5m2 = format(DType::F8E5M2);
        assert_eq!([57344.0, 61440.0, f64::INFINITY, -1e9].map(|x| e5m2.bits(x)), [0x7b, 0x7c, 0x7c, 0xfc]);
        let (e4m3, e5m2) = (format(DType::F8E4M3FNUZ), format(DType::F8E5M2FNUZ));
        assert_eq!([240.0, 247.0, 248.0, -0.0].map(|x| e4m3.bits(x)), [0x7f, 0x7f, 0x80, 0]);
        assert_eq!([57344.0, 61440.0, -1e9, -1e-9].map(|x| e5m2.bits(x)), [0x7f, 0x80, 0x80, 0]);
    }
}
