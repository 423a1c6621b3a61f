//! Which numbers a dtype can hold.

use crate::check;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::operator::value::Scalar;
use dml_kernel::DType;

/// Checks that a dtype can hold a number, as C++'s `Scalar::to` does; unsigned integers take negative ones.
pub fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let x = value.to_f64();
    let fits = if let (Scalar::Int(i), true) = (value, dtype.is_integer()) {
        // Not through a double: the largest int64 would round up.
        let bits = 8 * dtype.bytes() as u32;
        let largest = (1i128 << if dtype.is_signed_integer() { bits - 1 } else { bits }) - 1;
        let least = -largest - i128::from(dtype.is_signed_integer());
        (least..=largest).contains(&i128::from(i))
    } else if dtype.is_integer() {
        let bits = 8 * dtype.bytes() as i32;
        // As C++ compares: with the fraction, and with the limits of 64 bits rounded to doubles.
        let (low, high) = if dtype.is_signed_integer() {
            (-2f64.powi(bits - 1), (2f64.powi(bits - 1) - 1.0))
        } else {
            (0.0, (2f64.powi(bits) - 1.0))
        };
        low <= x && x <= high
    } else {
        let largest = match dtype {
            DType::F16 => 65504.0,
            DType::BF16 => f64::from(half::bf16::MAX),
            DType::F32 => f64::from(f32::MAX),
            _ => f64::INFINITY,
        };
        !x.is_finite() || x.abs() <= largest
    };
    check!(fits, Runtime, "value cannot be converted to type {} without overflow", cpp_name(dtype));
    Ok(())
}

/// [`check_fits`] of several numbers.
pub fn check_all_fit(numbers: &[Scalar], dtype: DType) -> Result<()> {
    numbers.iter().try_for_each(|&x| check_fits(x, dtype))
}

/// A dtype's type in the CPU's message.
fn cpp_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I64 => "int64_t",
        _ => type_name(dtype),
    }
}
