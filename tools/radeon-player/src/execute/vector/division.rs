//! Steps of divisions, for compilers that divide as the manual says: the operands are scaled to
//! where the quotient's steps lose nothing, and the last step takes the scale away.

use super::lane::{Value, write_long};
use crate::execute::wave::{VCC, Wave};
use crate::execute::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

/// What the steps of one type need to know.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// The power of two that operands are scaled by.
    power: i32,
    /// A quotient of so many powers of two is near the largest number.
    large: i32,
}

const SINGLE: Format = Format { fraction: 23, power: 64, large: 96 };
const DOUBLE: Format = Format { fraction: 52, power: 128, large: 768 };

/// A value times a power of two that keeps it, or its scaled value, in range.
fn scaled(value: f64, power: i32) -> f64 {
    value * f64::from_bits(((power + 1023) as u64) << 52)
}

/// The exponent as it is encoded.
fn exponent(value: f64, format: Format) -> i32 {
    if format.fraction == 52 {
        (value.to_bits() >> 52 & 0x7ff) as i32
    } else {
        ((value as f32).to_bits() >> 23 & 255) as i32
    }
}

/// One of the two operands, scaled if the division needs it, and whether the quotient is to be
/// scaled back.
fn scale(value: f64, denominator: f64, numerator: f64, format: Format) -> (f64, bool) {
    let small = |value: f64| if format.fraction == 52 { value.is_subnormal() } else { (value as f32).is_subnormal() };
    let difference = exponent(numerator, format) - exponent(denominator, format);
    let (inverse, quotient) = (small(1.0 / denominator), small(numerator / denominator));
    let (up, down) = (scaled(value, format.power), scaled(value, -format.power));
    let only = |operand: f64| if value == operand { up } else { value };
    match () {
        () if numerator == 0.0 || denominator == 0.0 => (f64::NAN, false),
        () if difference >= format.large => (only(denominator), true),
        () if small(denominator) => (up, false),
        () if inverse && quotient => (only(denominator), true),
        () if inverse => (down, false),
        () if quotient => (only(numerator), true),
        () if exponent(numerator, format) <= format.fraction as i32 + i32::from(format.fraction == 52) => (up, false),
        () => (value, false),
    }
}

fn scale_singles<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [value, denominator, numerator] = [0, 1, 2].map(|k| wave.floats(instruction, k).map(f64::from));
    let (mut row, mut back) = ([0f32; N], 0);
    for lane in 0..N {
        let (value, scaled) = scale(value[lane], denominator[lane], numerator[lane], SINGLE);
        row[lane] = value as f32;
        back |= u64::from(scaled) << lane;
    }
    wave.put(instruction.to, &row.map(f32::to_bits));
    wave.put_lanes(instruction.also, back & wave.exec());
    Ok(())
}

fn scale_doubles<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [value, denominator, numerator] = [0, 1, 2].map(|k| wave.float_doubles(instruction, k));
    let (mut rows, mut back) = ([[0; N]; 2], 0);
    for lane in 0..N {
        let (value, scaled) = scale(value[lane], denominator[lane], numerator[lane], DOUBLE);
        value.put(&mut rows, lane);
        back |= u64::from(scaled) << lane;
    }
    write_long(wave, instruction.to, &rows);
    wave.put_lanes(instruction.also, back & wave.exec());
    Ok(())
}

/// The factor that scales a quotient back: which way follows from the quotient.
fn back(quotient: f64, format: Format) -> f64 {
    2f64.powi(if quotient.abs() >= 2.0 { format.power } else { -format.power })
}

/// The multiply-add of the last step, scaled back in the lanes of vcc.
fn multiply_singles<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [a, b, c] = [0, 1, 2].map(|k| wave.floats(instruction, k));
    let lanes = wave.lanes(Operand::Scalar(VCC));
    let row = std::array::from_fn(|lane| {
        let sum = a[lane].mul_add(b[lane], c[lane]);
        if lanes >> lane & 1 != 0 { sum * back(f64::from(c[lane]), SINGLE) as f32 } else { sum }
    });
    wave.put_floats(instruction, row);
    Ok(())
}

fn multiply_doubles<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [a, b, c] = [0, 1, 2].map(|k| wave.float_doubles(instruction, k));
    let lanes = wave.lanes(Operand::Scalar(VCC));
    let row = std::array::from_fn(|lane| {
        let sum = a[lane].mul_add(b[lane], c[lane]);
        if lanes >> lane & 1 != 0 { sum * back(c[lane], DOUBLE) } else { sum }
    });
    wave.put_float_doubles(instruction, row);
    Ok(())
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_div_scale_f32" => scale_singles,
        "v_div_scale_f64" => scale_doubles,
        "v_div_fmas_f32" => multiply_singles,
        "v_div_fmas_f64" => multiply_doubles,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A division in the manual's steps.
    fn divide(numerator: f64, denominator: f64) -> f64 {
        let (below, _) = scale(denominator, denominator, numerator, DOUBLE);
        let (above, is_scaled) = scale(numerator, denominator, numerator, DOUBLE);
        let mut inverse = 1.0 / below;
        for _ in 0..2 {
            inverse = inverse.mul_add((-below).mul_add(inverse, 1.0), inverse);
        }
        let quotient = above * inverse;
        let rest = (-below).mul_add(quotient, above);
        rest.mul_add(inverse, quotient) * if is_scaled { back(quotient, DOUBLE) } else { 1.0 }
    }

    #[test]
    fn quotients_are_those_of_the_processor() {
        let mut state = 1u64;
        let mut number = |bits: i32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let power = (state >> 40) as i32 % bits;
            (1.0 + (state >> 12) as f64 / 2f64.powi(52)) * 2f64.powi(power - bits / 2)
        };
        for _ in 0..10_000 {
            let (a, b) = (number(1000), number(1000));
            assert_eq!(divide(a, b), a / b, "{a:e} / {b:e}");
        }
    }
}
