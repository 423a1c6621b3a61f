//! Integers of 16, 32 and 64 bits.

/// The low 24 bits, as a signed number.
#[inline(always)]
fn signed_24(a: u32) -> i64 {
    i64::from((a << 8) as i32 >> 8)
}

/// The low 24 bits.
#[inline(always)]
fn low_24(a: u32) -> u64 {
    u64::from(a & 0xff_ffff)
}

/// The upper half of a product.
#[inline(always)]
fn upper(a: u64) -> u32 {
    (a >> 32) as u32
}

/// Bytes of two words, chosen by those of a third.
#[inline(always)]
fn permute(a: u32, b: u32, choice: u32) -> u32 {
    let both = u64::from(a) << 32 | u64::from(b);
    let mut result = 0;
    for byte in 0..4 {
        let chosen = choice >> (8 * byte) & 255;
        let value = match chosen {
            0..=7 => (both >> (8 * chosen) & 255) as u32,
            8..=11 => (both >> (16 * (chosen - 8) + 15) & 1) as u32 * 255,
            12 => 0,
            _ => 255,
        };
        result |= value << (8 * byte);
    }
    result
}

/// The sum of differences of four bytes each.
#[inline(always)]
fn byte_differences(a: u32, b: u32) -> u32 {
    (0..4).map(|byte| (a >> (8 * byte) & 255).abs_diff(b >> (8 * byte) & 255)).sum()
}

#[inline(always)]
fn mask(bits: u32) -> u32 {
    (1u32 << (bits & 31)) - 1
}

super::operations! {
    "v_mov_b32"(a: u32) -> u32 { a }
    "v_not_b32"(a: u32) -> u32 { !a }
    "v_bfrev_b32"(a: u32) -> u32 { a.reverse_bits() }
    "v_clz_i32_u32" | "v_ffbh_u32"(a: u32) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } }
    "v_ctz_i32_b32" | "v_ffbl_b32"(a: u32) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } }
    "v_cls_i32" | "v_ffbh_i32"(a: i32) -> u32 {
        let changed = a ^ a >> 31;
        if changed == 0 { u32::MAX } else { changed.leading_zeros() }
    }
    "v_add_nc_u32" | "v_add_u32"(a: u32, b: u32) -> u32 { a.wrapping_add(b) } or { a.saturating_add(b) }
    "v_add_nc_i32"(a: i32, b: i32) -> i32 { a.wrapping_add(b) } or { a.saturating_add(b) }
    "v_sub_nc_u32" | "v_sub_u32"(a: u32, b: u32) -> u32 { a.wrapping_sub(b) } or { a.saturating_sub(b) }
    "v_sub_nc_i32"(a: i32, b: i32) -> i32 { a.wrapping_sub(b) } or { a.saturating_sub(b) }
    "v_subrev_nc_u32"(a: u32, b: u32) -> u32 { b.wrapping_sub(a) } or { b.saturating_sub(a) }
    "v_mul_lo_u32"(a: u32, b: u32) -> u32 { a.wrapping_mul(b) }
    "v_mul_hi_u32"(a: u32, b: u32) -> u32 { upper(u64::from(a) * u64::from(b)) }
    "v_mul_hi_i32"(a: i32, b: i32) -> u32 { upper((i64::from(a) * i64::from(b)) as u64) }
    "v_mul_u32_u24"(a: u32, b: u32) -> u32 { (low_24(a) * low_24(b)) as u32 }
    "v_mul_hi_u32_u24"(a: u32, b: u32) -> u32 { upper(low_24(a) * low_24(b)) }
    "v_mul_i32_i24"(a: u32, b: u32) -> u32 { (signed_24(a) * signed_24(b)) as u32 }
    "v_mul_hi_i32_i24"(a: u32, b: u32) -> u32 { upper((signed_24(a) * signed_24(b)) as u64) }
    "v_mad_u32_u24"(a: u32, b: u32, c: u32) -> u32 { ((low_24(a) * low_24(b)) as u32).wrapping_add(c) }
    "v_mad_i32_i24"(a: u32, b: u32, c: u32) -> u32 { ((signed_24(a) * signed_24(b)) as u32).wrapping_add(c) }
    "v_mad_u32_u16"(a: u16, b: u16, c: u32) -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }
    "v_mad_i32_i16"(a: i16, b: i16, c: i32) -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }
    "v_and_b32"(a: u32, b: u32) -> u32 { a & b }
    "v_or_b32"(a: u32, b: u32) -> u32 { a | b }
    "v_xor_b32"(a: u32, b: u32) -> u32 { a ^ b }
    "v_xnor_b32"(a: u32, b: u32) -> u32 { !(a ^ b) }
    "v_lshlrev_b32"(a: u32, b: u32) -> u32 { b << (a & 31) }
    "v_lshrrev_b32"(a: u32, b: u32) -> u32 { b >> (a & 31) }
    "v_ashrrev_i32"(a: u32, b: i32) -> i32 { b >> (a & 31) }
    "v_min_u32"(a: u32, b: u32) -> u32 { a.min(b) }
    "v_max_u32"(a: u32, b: u32) -> u32 { a.max(b) }
    "v_min_i32"(a: i32, b: i32) -> i32 { a.min(b) }
    "v_max_i32"(a: i32, b: i32) -> i32 { a.max(b) }
    "v_min3_u32"(a: u32, b: u32, c: u32) -> u32 { a.min(b).min(c) }
    "v_max3_u32"(a: u32, b: u32, c: u32) -> u32 { a.max(b).max(c) }
    "v_med3_u32"(a: u32, b: u32, c: u32) -> u32 { a.min(b).max(a.max(b).min(c)) }
    "v_min3_i32"(a: i32, b: i32, c: i32) -> i32 { a.min(b).min(c) }
    "v_max3_i32"(a: i32, b: i32, c: i32) -> i32 { a.max(b).max(c) }
    "v_med3_i32"(a: i32, b: i32, c: i32) -> i32 { a.min(b).max(a.max(b).min(c)) }
    "v_maxmin_u32"(a: u32, b: u32, c: u32) -> u32 { a.max(b).min(c) }
    "v_minmax_u32"(a: u32, b: u32, c: u32) -> u32 { a.min(b).max(c) }
    "v_maxmin_i32"(a: i32, b: i32, c: i32) -> i32 { a.max(b).min(c) }
    "v_minmax_i32"(a: i32, b: i32, c: i32) -> i32 { a.min(b).max(c) }
    "v_add3_u32"(a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b).wrapping_add(c) }
    "v_lshl_add_u32"(a: u32, b: u32, c: u32) -> u32 { (a << (b & 31)).wrapping_add(c) }
    "v_add_lshl_u32"(a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b) << (c & 31) }
    "v_lshl_or_b32"(a: u32, b: u32, c: u32) -> u32 { a << (b & 31) | c }
    "v_and_or_b32"(a: u32, b: u32, c: u32) -> u32 { a & b | c }
    "v_or3_b32"(a: u32, b: u32, c: u32) -> u32 { a | b | c }
    "v_xor3_b32"(a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    "v_xad_u32"(a: u32, b: u32, c: u32) -> u32 { (a ^ b).wrapping_add(c) }
    "v_bfe_u32"(a: u32, b: u32, c: u32) -> u32 { a >> (b & 31) & mask(c) }
    "v_bfe_i32"(a: u32, b: u32, c: u32) -> i32 {
        let bits = c & 31;
        let moved = (a as i32 >> (b & 31)) << ((32 - bits) & 31) >> ((32 - bits) & 31);
        if bits == 0 { 0 } else { moved }
    }
    "v_bfi_b32"(a: u32, b: u32, c: u32) -> u32 { a & b | !a & c }
    "v_bfm_b32"(a: u32, b: u32) -> u32 { mask(a) << (b & 31) }
    "v_perm_b32"(a: u32, b: u32, c: u32) -> u32 { permute(a, b, c) }
    "v_alignbit_b32"(a: u32, b: u32, c: u32) -> u32 { ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32 }
    "v_alignbyte_b32"(a: u32, b: u32, c: u32) -> u32 { ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32 }
    "v_bcnt_u32_b32"(a: u32, b: u32) -> u32 { a.count_ones().wrapping_add(b) }
    "v_sad_u32"(a: u32, b: u32, c: u32) -> u32 { a.abs_diff(b).wrapping_add(c) }
    "v_sad_u8"(a: u32, b: u32, c: u32) -> u32 { byte_differences(a, b).wrapping_add(c) }
    "v_sad_u16"(a: u32, b: u32, c: u32) -> u32 {
        (a & 0xffff).abs_diff(b & 0xffff).wrapping_add((a >> 16).abs_diff(b >> 16)).wrapping_add(c)
    }
    "v_lshlrev_b64"(a: u32, b: u64) -> u64 { b << (a & 63) }
    "v_lshrrev_b64"(a: u32, b: u64) -> u64 { b >> (a & 63) }
    "v_ashrrev_i64"(a: u32, b: i64) -> i64 { b >> (a & 63) }
    "v_mov_b16"(a: u16) -> u16 { a }
    "v_not_b16"(a: u16) -> u16 { !a }
    "v_and_b16"(a: u16, b: u16) -> u16 { a & b }
    "v_or_b16"(a: u16, b: u16) -> u16 { a | b }
    "v_xor_b16"(a: u16, b: u16) -> u16 { a ^ b }
    "v_lshlrev_b16"(a: u16, b: u16) -> u16 { b << (a & 15) }
    "v_lshrrev_b16"(a: u16, b: u16) -> u16 { b >> (a & 15) }
    "v_ashrrev_i16"(a: u16, b: i16) -> i16 { b >> (a & 15) }
    "v_add_nc_u16"(a: u16, b: u16) -> u16 { a.wrapping_add(b) } or { a.saturating_add(b) }
    "v_add_nc_i16"(a: i16, b: i16) -> i16 { a.wrapping_add(b) } or { a.saturating_add(b) }
    "v_sub_nc_u16"(a: u16, b: u16) -> u16 { a.wrapping_sub(b) } or { a.saturating_sub(b) }
    "v_sub_nc_i16"(a: i16, b: i16) -> i16 { a.wrapping_sub(b) } or { a.saturating_sub(b) }
    "v_mul_lo_u16"(a: u16, b: u16) -> u16 { a.wrapping_mul(b) }
    "v_mad_u16" | "v_mad_i16"(a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }
    "v_min_u16"(a: u16, b: u16) -> u16 { a.min(b) }
    "v_max_u16"(a: u16, b: u16) -> u16 { a.max(b) }
    "v_min_i16"(a: i16, b: i16) -> i16 { a.min(b) }
    "v_max_i16"(a: i16, b: i16) -> i16 { a.max(b) }
    "v_min3_u16"(a: u16, b: u16, c: u16) -> u16 { a.min(b).min(c) }
    "v_max3_u16"(a: u16, b: u16, c: u16) -> u16 { a.max(b).max(c) }
    "v_med3_u16"(a: u16, b: u16, c: u16) -> u16 { a.min(b).max(a.max(b).min(c)) }
    "v_min3_i16"(a: i16, b: i16, c: i16) -> i16 { a.min(b).min(c) }
    "v_max3_i16"(a: i16, b: i16, c: i16) -> i16 { a.max(b).max(c) }
    "v_med3_i16"(a: i16, b: i16, c: i16) -> i16 { a.min(b).max(a.max(b).min(c)) }
}
