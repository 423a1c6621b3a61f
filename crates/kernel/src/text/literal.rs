//! Number literals.

use crate::types::ScalarType;

/// The shortest decimal number that rounds to this one; the bits for a NaN other than the canonical
/// one.
pub(super) fn float32(bits: u32) -> String {
    match f32::from_bits(bits) {
        x if x.is_nan() && bits == f32::NAN.to_bits() => "nan".to_owned(),
        x if x.is_nan() => format!("{bits:#010x}"),
        x => format!("{x:?}"),
    }
}

/// The same for 64 bits.
pub(super) fn float64(bits: u64) -> String {
    match f64::from_bits(bits) {
        x if x.is_nan() && bits == f64::NAN.to_bits() => "nan".to_owned(),
        x if x.is_nan() => format!("{bits:#018x}"),
        x => format!("{x:?}"),
    }
}

/// The bits of a literal of a type.
pub(super) fn bits_of(text: &str, scalar: ScalarType) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let fits = scalar != ScalarType::Bool && (scalar.bytes() == 8 || bits <= u64::from(u32::MAX));
        return fits.then_some(bits);
    }
    // Numbers that are too large are not literals of the type.
    let special = matches!(text, "inf" | "-inf" | "nan");
    match scalar {
        ScalarType::Bool => None,
        ScalarType::I32 => text.parse::<i32>().ok().map(|x| u64::from(x.cast_unsigned())),
        ScalarType::U32 => text.parse::<u32>().ok().map(u64::from),
        ScalarType::I64 => text.parse::<i64>().ok().map(i64::cast_unsigned),
        ScalarType::U64 => text.parse().ok(),
        ScalarType::F32 => text.parse().ok().filter(|x: &f32| x.is_finite() || special).map(|x| x.to_bits().into()),
        ScalarType::F64 => text.parse().ok().filter(|x: &f64| x.is_finite() || special).map(f64::to_bits),
    }
}
