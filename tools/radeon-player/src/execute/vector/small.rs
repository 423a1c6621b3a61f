//! Floats of eight bits: `fp8` has four bits of exponent and no infinities, `bf8` has five.

use crate::execute::wave::{Row, Wave};
use crate::execute::{Group, Handler, Outcome};
use crate::isa::instruction::Instruction;

/// Bits of the fraction, by which the types are told apart.
pub const FP8: u32 = 3;
/// Of the type with the wider exponent.
pub const BF8: u32 = 2;

/// A value of eight bits as f32, exactly.
#[must_use]
pub fn value<const FRACTION: u32>(byte: u8) -> f32 {
    let (most, bias) = if FRACTION == FP8 { (15, 7) } else { (31, 15) };
    let fraction = u32::from(byte) & ((1 << FRACTION) - 1);
    let exponent = (u32::from(byte & 0x7f) >> FRACTION) as i32;
    let one = 1u32 << FRACTION;
    let power = |exponent: i32| f32::from_bits(((exponent - bias - FRACTION as i32 + 127) as u32) << 23);
    let size = if exponent == most && FRACTION == BF8 {
        if fraction == 0 { f32::INFINITY } else { f32::NAN }
    } else if byte & 0x7f == 0x7f {
        f32::NAN
    } else if exponent == 0 {
        fraction as f32 * power(1)
    } else {
        (one + fraction) as f32 * power(exponent)
    };
    if byte & 0x80 != 0 { -size } else { size }
}

/// f32 to eight bits, to the nearest and ties to even. What is beyond the largest number is
/// infinite, or no number where the type has no infinity.
#[must_use]
pub fn nearest<const FRACTION: u32>(value: f32) -> u8 {
    let (beyond, nan, bias) = if FRACTION == FP8 { (0x7f, 0x7f, 7) } else { (0x7c, 0x7f, 15) };
    let sign = (value.to_bits() >> 24) as u8 & 0x80;
    if value.is_nan() {
        return sign | nan;
    }
    if value.is_infinite() {
        return sign | beyond;
    }
    let size = f64::from(value.abs());
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // In units of the last place; the sum with the exponent carries into it.
    let units = (size * f64::from_bits(((FRACTION as i32 - exponent + 1023) as u64) << 52)).round_ties_even() as i32;
    let code = ((exponent + bias - 1) << FRACTION) + units;
    sign | if code >= i32::from(beyond) { beyond } else { code as u8 }
}

/// f32 to eight bits with noise added below the last place: the upper bits of a word.
fn noisy<const FRACTION: u32>(value: f32, noise: u32) -> u8 {
    let bits = value.to_bits();
    let places = 23 - FRACTION;
    // The fraction alone takes part: it wraps around.
    let fraction = (bits & 0x7f_ffff).wrapping_add(noise >> (32 - places)) & 0x7f_ffff;
    if value.is_nan() || value.is_infinite() {
        return nearest::<FRACTION>(value);
    }
    nearest::<FRACTION>(f32::from_bits(bits & 0xff80_0000 | fraction))
}

fn to_single<const N: usize, const F: u32>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    // The two bits of the choice stand the other way round.
    let at = 8 * (u32::from(it.high & 1) << 1 | u32::from(it.high >> 1 & 1));
    let row = wave.words(it.source[0]).map(|word| value::<F>((word >> at) as u8));
    wave.put_floats(it, row);
    Ok(())
}

fn to_singles<const N: usize, const F: u32>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let at = 16 * u32::from(it.high & 1);
    let half = wave.words(it.source[0]).map(|word| word >> at);
    let pair = half.map(|half| {
        let [low, high] = [half, half >> 8].map(|byte| value::<F>(byte as u8).to_bits());
        u64::from(low) | u64::from(high) << 32
    });
    wave.put_doubles(it.to, &pair);
    Ok(())
}

fn of_singles<const N: usize, const F: u32>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (a, b) = (wave.floats(it, 0), wave.floats(it, 1));
    let row: Row<N, u16> = std::array::from_fn(|lane| u16::from_le_bytes([a[lane], b[lane]].map(nearest::<F>)));
    wave.put_halves(it, &row);
    Ok(())
}

fn of_single_with_noise<const N: usize, const F: u32>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (a, noise, old) = (wave.floats(it, 0), wave.words(it.source[1]), wave.words(it.to));
    let at = 8 * u32::from(it.high >> 2 & 3);
    let row = std::array::from_fn(|lane| {
        let byte = noisy::<F>(a[lane], noise[lane]);
        old[lane] & !(255 << at) | u32::from(byte) << at
    });
    wave.put(it.to, &row);
    Ok(())
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_cvt_f32_fp8" => to_single::<N, FP8>,
        "v_cvt_f32_bf8" => to_single::<N, BF8>,
        "v_cvt_pk_f32_fp8" => to_singles::<N, FP8>,
        "v_cvt_pk_f32_bf8" => to_singles::<N, BF8>,
        "v_cvt_pk_fp8_f32" => of_singles::<N, FP8>,
        "v_cvt_pk_bf8_f32" => of_singles::<N, BF8>,
        "v_cvt_sr_fp8_f32" => of_single_with_noise::<N, FP8>,
        "v_cvt_sr_bf8_f32" => of_single_with_noise::<N, BF8>,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The byte whose value is next to a number, of two the even one, by looking at all.
    fn next_to<const F: u32>(number: f32) -> f32 {
        let all = (0..128u8).filter(|&byte| value::<F>(byte).is_finite());
        let distance = |byte: &u8| (f64::from(value::<F>(*byte)) - f64::from(number.abs())).abs();
        let best = all.min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
        value::<F>(best.unwrap_or(0)).copysign(number)
    }

    #[test]
    fn known_values() {
        assert_eq!((value::<FP8>(0x7e), value::<FP8>(1), value::<FP8>(0x38)), (448.0, 2f32.powi(-9), 1.0));
        assert_eq!((value::<BF8>(0x7b), value::<BF8>(1), value::<BF8>(0xbc)), (57344.0, 2f32.powi(-16), -1.0));
        assert!(value::<FP8>(0x7f).is_nan() && value::<BF8>(0x7d).is_nan() && value::<BF8>(0x7c) == f32::INFINITY);
        assert_eq!((nearest::<FP8>(1e6), nearest::<BF8>(1e6), nearest::<BF8>(-1e6)), (0x7f, 0x7c, 0xfc));
        assert_eq!((noisy::<FP8>(1.0, 0), noisy::<FP8>(1.05, u32::MAX)), (0x38, 0x39));
    }

    #[test]
    fn rounding_is_to_the_nearest_of_all() {
        fn check<const F: u32>(most: f32) {
            for byte in 0..=255u8 {
                let number = value::<F>(byte);
                if number.is_finite() {
                    assert_eq!(nearest::<F>(number), byte, "{number}");
                }
            }
            let mut bits = 1u32;
            for _ in 0..20_000 {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Exponents about those of the type.
                let number = f32::from_bits(bits & 0x87ff_ffff | 0x3800_0000);
                if number.abs() <= most {
                    assert_eq!(value::<F>(nearest::<F>(number)), next_to::<F>(number), "{number:e}");
                }
            }
        }
        check::<FP8>(448.0);
        check::<BF8>(57344.0);
    }
}
