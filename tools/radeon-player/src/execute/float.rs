//! Conversions and roundings of floats.

/// A half as f32, exactly.
#[inline(always)]
#[must_use]
pub fn half_to_float(half: u16) -> f32 {
    // The exponent and fraction, moved to their place and scaled by the difference of the biases;
    // infinities and NaN apart.
    let magnitude = f32::from_bits(u32::from(half & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
    let special = if half & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | u32::from(half & 0x8000) << 16)
}

/// f32 rounded to a half, to the nearest and ties to even.
#[inline(always)]
#[must_use]
pub fn float_to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    // Normal: the fraction is rounded where it is; a carry goes into the exponent, and beyond the
    // largest to infinity.
    let normal = magnitude.wrapping_sub(0x3800_0000).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    // Subnormal: an addition whose last place is that of the result rounds it.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let nan = 0x7e00 | (magnitude >> 13 & 0x1ff);
    let half = if magnitude > 0x7f80_0000 {
        nan
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        subnormal
    } else {
        normal
    };
    sign | half as u16
}

/// The sum of two halves each, rounded to halves.
#[must_use]
pub fn add_halves(a: u32, b: u32) -> u32 {
    let sum = |at: u32| float_to_half(half_to_float((a >> at) as u16) + half_to_float((b >> at) as u16));
    u32::from(sum(0)) | u32::from(sum(16)) << 16
}

/// The sum of two bfloat16 each, rounded to bfloat16.
#[must_use]
pub fn add_brains(a: u32, b: u32) -> u32 {
    let value = |word: u32| f32::from_bits(word & 0xffff_0000);
    let sum = |a: u32, b: u32| u32::from(half::bf16::from_f32(value(a) + value(b)).to_bits());
    sum(a << 16, b << 16) | sum(a, b) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_the_crate() {
        for half in 0..=u16::MAX {
            let value = half::f16::from_bits(half);
            assert_eq!(
                half_to_float(half).to_bits() | (0x40_0000 * u32::from(value.is_nan())),
                value.to_f32().to_bits()
            );
            if !value.is_nan() {
                assert_eq!(float_to_half(value.to_f32()), half);
            }
        }
        let mut state = 1u32;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(state);
            if !value.is_nan() {
                assert_eq!(float_to_half(value), half::f16::from_f32(value).to_bits(), "{value:e}");
            }
        }
        assert_eq!(float_to_half(f32::NAN) & 0x7c00, 0x7c00);
    }
}
