//! Unsigned integers that order elements as `sort` does: NaN above every number, both zeros equal.
//!
//! A float's bits with the sign flipped, or all bits flipped for a negative number, are ordered
//! like the float (M. Herf, "Radix tricks", 2001). All ones is the key of NaN.

use dml_kernel::{DType, Pointer, Value};

/// The dtype of the keys of a dtype's elements.
pub fn dtype_of(dtype: DType) -> DType {
    if dtype.bytes() == 8 { DType::U64 } else { DType::U32 }
}

/// Number of low bits in which the keys of a dtype's elements may differ.
pub fn bits(dtype: DType) -> u32 {
    if dtype == DType::Bool { 1 } else { 8 * dtype.bytes() as u32 }
}

/// The largest key of a dtype: for floats the key of NaN.
pub fn largest(dtype: DType) -> u64 {
    u64::MAX >> (64 - bits(dtype))
}

/// The key, a u32 or u64, of an element given by its bits (a load through [`DType::bits`]).
pub fn of_bits(raw: Value<'_>, dtype: DType, descending: bool) -> Value<'_> {
    let scalar = dtype_of(dtype).compute();
    let raw = raw.cast(scalar);
    let (all, b) = (largest(dtype), raw.builder());
    let sign = (all >> 1) + 1;
    let key = match dtype {
        d if d.is_signed_integer() => raw ^ sign,
        d if d.is_float() => {
            let infinity = match d {
                DType::F16 => 0x7c00,
                DType::BF16 => 0x7f80,
                DType::F32 => 0x7f80_0000,
                _ => 0x7ff0_0000_0000_0000u64,
            };
            let magnitude = raw & (sign - 1);
            let negative = (raw & sign).ne(0) & magnitude.ne(0);
            let number = negative.select(raw ^ all, magnitude | sign);
            magnitude.gt(infinity).select(b.int(scalar, all), number)
        }
        _ => raw,
    };
    if descending { key ^ all } else { key }
}

/// Loads the key of element `at`; the pointer is of the dtype's bits.
pub fn load<'b>(elements: Pointer<'b>, dtype: DType, at: Value<'b>) -> Value<'b> {
    of_bits(elements.load(at), dtype, false)
}

/// The bits of the element with this key, as a u32 or u64. If [several elements](is_of_several)
/// have the key, the bits of one of them.
pub fn to_bits(key: Value<'_>, dtype: DType, descending: bool) -> Value<'_> {
    let all = largest(dtype);
    let sign = (all >> 1) + 1;
    let key = if descending { key ^ all } else { key };
    match dtype {
        d if d.is_signed_integer() => key ^ sign,
        d if d.is_float() => (key & sign).ne(0).select(key ^ sign, key ^ all),
        _ => key,
    }
}

/// Whether elements with different bits have this key: NaN, or both zeros.
pub fn is_of_several(key: Value<'_>, dtype: DType, descending: bool) -> Value<'_> {
    if !dtype.is_float() {
        return key.builder().bool(false);
    }
    let all = largest(dtype);
    let flip = if descending { all } else { 0 };
    key.eq(all ^ flip) | key.eq(((all >> 1) + 1) ^ flip)
}
