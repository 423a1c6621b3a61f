//! From one type to another. Rust's casts to integers end at the limits and make zero of what is no
//! number, as the hardware does.

use super::halves::Half;
use crate::execute::float::{float_to_half, half_to_float};

/// Two shorts in a word.
#[inline(always)]
fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// A half towards zero.
#[inline(always)]
pub fn half_toward_zero(value: f32) -> u32 {
    let near = float_to_half(value);
    let beyond = half_to_float(near).abs() > value.abs();
    u32::from(if beyond { near - 1 } else { near })
}

super::operations! {
    "v_cvt_f32_i32"(a: i32) -> f32 { a as f32 }
    "v_cvt_f32_u32"(a: u32) -> f32 { a as f32 }
    "v_cvt_f32_ubyte0"(a: u32) -> f32 { (a & 255) as f32 }
    "v_cvt_f32_ubyte1"(a: u32) -> f32 { (a >> 8 & 255) as f32 }
    "v_cvt_f32_ubyte2"(a: u32) -> f32 { (a >> 16 & 255) as f32 }
    "v_cvt_f32_ubyte3"(a: u32) -> f32 { (a >> 24) as f32 }
    "v_cvt_u32_f32"(a: f32) -> u32 { a as u32 }
    "v_cvt_i32_f32"(a: f32) -> i32 { a as i32 }
    "v_cvt_floor_i32_f32" | "v_cvt_flr_i32_f32"(a: f32) -> i32 { a.floor() as i32 }
    "v_cvt_nearest_i32_f32" | "v_cvt_rpi_i32_f32"(a: f32) -> i32 { (f64::from(a) + 0.5).floor() as i32 }
    "v_cvt_f64_f32"(a: f32) -> f64 { f64::from(a) }
    "v_cvt_f64_i32"(a: i32) -> f64 { f64::from(a) }
    "v_cvt_f64_u32"(a: u32) -> f64 { f64::from(a) }
    "v_cvt_f32_f64"(a: f64) -> f32 { a as f32 }
    "v_cvt_i32_f64"(a: f64) -> i32 { a as i32 }
    "v_cvt_u32_f64"(a: f64) -> u32 { a as u32 }
    "v_cvt_f32_f16"(a: Half) -> f32 { a.0 }
    "v_cvt_f16_f32"(a: f32) -> Half { Half(a) }
    "v_cvt_f16_u16"(a: u16) -> Half { Half(f32::from(a)) }
    "v_cvt_f16_i16"(a: i16) -> Half { Half(f32::from(a)) }
    "v_cvt_u16_f16"(a: Half) -> u16 { a.0 as u16 }
    "v_cvt_i16_f16"(a: Half) -> i16 { a.0 as i16 }
    "v_cvt_i32_i16"(a: i16) -> i32 { i32::from(a) }
    "v_cvt_u32_u16"(a: u16) -> u32 { u32::from(a) }
    "v_sat_pk_u8_i16"(a: u32) -> u16 {
        let byte = |half: u32| (half as u16 as i16).clamp(0, 255) as u16;
        byte(a) | byte(a >> 16) << 8
    }
    "v_pack_b32_f16"(a: u16, b: u16) -> u32 { pack(a, b) }
    "v_cvt_pk_rtz_f16_f32" | "v_cvt_pkrtz_f16_f32"(a: f32, b: f32) -> u32 { half_toward_zero(a) | half_toward_zero(b) << 16 }
    "v_cvt_pk_i16_i32"(a: i32, b: i32) -> u32 {
        let short = |value: i32| value.clamp(-0x8000, 0x7fff) as u16;
        pack(short(a), short(b))
    }
    "v_cvt_pk_u16_u32"(a: u32, b: u32) -> u32 { pack(a.min(0xffff) as u16, b.min(0xffff) as u16) }
    "v_cvt_pk_i16_f32"(a: f32, b: f32) -> u32 { pack(a as i16 as u16, b as i16 as u16) }
    "v_cvt_pk_u16_f32"(a: f32, b: f32) -> u32 { pack(a as u16, b as u16) }
    "v_cvt_pk_norm_i16_f32" | "v_cvt_pknorm_i16_f32"(a: f32, b: f32) -> u32 {
        let short = |value: f32| (value.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16;
        pack(short(a), short(b))
    }
    "v_cvt_pk_norm_u16_f32" | "v_cvt_pknorm_u16_f32"(a: f32, b: f32) -> u32 {
        let short = |value: f32| (value.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16;
        pack(short(a), short(b))
    }
    "v_cvt_norm_i16_f16"(a: Half) -> i16 { (a.0.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 }
    "v_cvt_norm_u16_f16"(a: Half) -> u16 { (a.0.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16 }
    "v_cvt_pk_norm_i16_f16" | "v_cvt_pknorm_i16_f16"(a: Half, b: Half) -> u32 {
        let short = |value: f32| (value.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16;
        pack(short(a.0), short(b.0))
    }
    "v_cvt_pk_norm_u16_f16" | "v_cvt_pknorm_u16_f16"(a: Half, b: Half) -> u32 {
        let short = |value: f32| (value.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16;
        pack(short(a.0), short(b.0))
    }
    "v_cvt_off_f32_i4"(a: i32) -> f32 { (a << 28 >> 28) as f32 / 16.0 }
    "v_cvt_pk_u8_f32"(a: f32, b: u32, c: u32) -> u32 {
        let at = 8 * (b & 3);
        c & !(255 << at) | u32::from(a as u8) << at
    }
}
