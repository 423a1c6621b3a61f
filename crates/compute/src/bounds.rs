//! The range of numbers that a dtype can represent.

use crate::scalar::Scalar;
use dml_kernel::DType;
use dml_kernel::float8::Format;

/// The range of numbers that a dtype can represent, by the rule of C++'s `Scalar::to`: unsigned
/// integers accept negative numbers too.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds(DType);

impl Bounds {
    /// The range of a dtype.
    pub fn of(dtype: DType) -> Self {
        Self(dtype)
    }

    /// The least and the largest integer.
    pub fn of_integers(self) -> (i128, i128) {
        let dtype = self.0;
        if dtype.is_integer() {
            let largest = (1i128 << (8 * dtype.bytes() as u32 - u32::from(dtype.is_signed_integer()))) - 1;
            return (-largest - i128::from(dtype.is_signed_integer()), largest);
        }
        let largest = self.of_floats().1;
        // The conversion saturates, far beyond the range of all integer dtypes.
        (-largest as i128, largest as i128)
    }

    /// The least and the largest finite double; fractions are not cut off before they are compared.
    /// 2^63 does not fit int64, though int64's limit rounds to it.
    pub fn of_floats(self) -> (f64, f64) {
        let bits = 8 * self.0.bytes() as i32;
        match self.0 {
            dtype if dtype.is_signed_integer() => (-2f64.powi(bits - 1), below_power_of_two(bits - 1)),
            dtype if dtype.is_integer() => (0.0, below_power_of_two(bits)),
            DType::F16 => (-65504.0, 65504.0),
            DType::BF16 => (-f64::from(half::bf16::MAX), f64::from(half::bf16::MAX)),
            DType::F32 => (-f64::from(f32::MAX), f64::from(f32::MAX)),
            other => {
                let largest = Format::of(other).map_or(f64::MAX, Format::largest);
                (-largest, largest)
            }
        }
    }

    /// Whether the dtype has infinities and NaN.
    pub fn special(self) -> bool {
        !self.0.is_integer()
    }
}

/// The largest double that is an integer below 2^`exponent`.
fn below_power_of_two(exponent: i32) -> f64 {
    let power = 2f64.powi(exponent);
    if exponent <= f64::MANTISSA_DIGITS as i32 { power - 1.0 } else { power.next_down() }
}

/// A number rounded to `dtype` if that is a float of 16 or 8 bits. Other dtypes are rounded where
/// they are computed with.
pub fn rounded(value: Scalar, dtype: DType) -> Scalar {
    match dtype {
        DType::F16 => Scalar::Double(half::f16::from_f64(value.to_f64()).to_f64()),
        DType::BF16 => Scalar::Double(half::bf16::from_f64(value.to_f64()).to_f64()),
        _ => match Format::of(dtype) {
            Some(format) => Scalar::Double(format.number(format.bits(value.to_f64()))),
            None => value,
        },
    }
}

/// The error message for a number that a dtype cannot represent.
pub const fn overflow_message(dtype: DType) -> &'static str {
    macro_rules! overflow {
        ($type:literal) => {
            concat!("value cannot be converted to type ", $type, " without overflow")
        };
    }
    match dtype {
        DType::Bool => overflow!("bool"),
        DType::U8 => overflow!("uint8_t"),
        DType::I8 => overflow!("int8_t"),
        DType::I16 => overflow!("int16_t"),
        DType::I32 => overflow!("int"),
        DType::I64 => overflow!("int64_t"),
        DType::U16 => overflow!("uint16_t"),
        DType::U32 => overflow!("uint32_t"),
        DType::U64 => overflow!("uint64_t"),
        DType::F16 => overflow!("c10::Half"),
        DType::BF16 => overflow!("c10::BFloat16"),
        DType::F32 => overflow!("float"),
        DType::F64 => overflow!("double"),
        DType::C32 => overflow!("c10::complex<c10::Half>"),
        DType::C64 => overflow!("c10::complex<float>"),
        DType::C128 => overflow!("c10::complex<double>"),
        DType::F8E4M3FN => overflow!("c10::Float8_e4m3fn"),
        DType::F8E5M2 => overflow!("c10::Float8_e5m2"),
        DType::F8E4M3FNUZ => overflow!("c10::Float8_e4m3fnuz"),
        DType::F8E5M2FNUZ => overflow!("c10::Float8_e5m2fnuz"),
    }
}
