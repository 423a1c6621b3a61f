//! Powers of two, for weights that are rounded to 16 bits afterwards.

use dml_kernel::{ScalarType, Value};

/// `2^x` of an f32 up to 126; 0 below -125, and NaN of NaN. Off by 2e-7 of it at most: the polynomial is the one of degree 5
/// with the least relative error between -1/2 and 1/2 that is 1 at 0.
pub fn exp2(x: Value<'_>) -> Value<'_> {
    const COEFFICIENTS: [f64; 5] = [
        0.001_326_471_498_826_1,
        0.009_671_513_510_714_95,
        0.055_507_337_837_734_8,
        0.240_222_420_663_817_4,
        0.693_146_977_571_056_7,
    ];
    // Above it, numbers are whole: the sum's low bits are the nearest whole number to x.
    const WHOLE: f64 = 12_582_912.0;
    let shifted = x + WHOLE;
    let rest = x - (shifted - WHOLE);
    let b = x.builder();
    let [first, others @ ..] = COEFFICIENTS.map(|c| b.float(ScalarType::F32, c));
    let slope = others.into_iter().fold(first, |sum, c| sum.fma(rest, c));
    let fraction = slope.fma(rest, b.float(ScalarType::F32, 1.0));
    let exponent = (shifted.bitcast(ScalarType::U32) << 23) + 1f32.to_bits();
    // A product, not a sum of bits: those of a NaN are the adapter's own, and may become any number's.
    let power = fraction * exponent.bitcast(ScalarType::F32);
    x.lt(-125.0).select(x.like(0.0), power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_kernel::interpret::{Argument, run};
    use dml_kernel::{Builder, DType};

    fn powers(numbers: &[f32]) -> Vec<f32> {
        let b = Builder::new("exp2", [1, 1, 1]);
        let (x, out) = (b.input("x", DType::F32), b.pointer("out", DType::F32));
        out.store(b.group_id(0), exp2(x.load(b.group_id(0))));
        let kernel = b.finish();
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut results = vec![0; bytes.len()];
        let groups = [numbers.len() as u32, 1, 1];
        run(&kernel, groups, 8, &mut [Argument::Memory(&mut bytes), Argument::Memory(&mut results)]);
        results.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn powers_are_near() {
        let numbers: Vec<f32> = (0..3000).map(|i| 20.0 - i as f32 * 0.048_3).filter(|&x| x >= -125.0).collect();
        for (x, power) in numbers.iter().zip(powers(&numbers)) {
            let expected = f64::from(*x).exp2();
            assert!((f64::from(power) / expected - 1.0).abs() < 2.5e-7, "2^{x} is {expected}, not {power}");
        }
    }

    #[test]
    fn edges() {
        let found = powers(&[0.0, -0.0, f32::NEG_INFINITY, -125.5, -1e30, f32::NAN]);
        assert_eq!(found[..5], [1.0, 1.0, 0.0, 0.0, 0.0]);
        assert!(found[5].is_nan());
        // NVIDIA's, which has all bits set.
        assert!(powers(&[f32::from_bits(0x7fff_ffff)])[0].is_nan());
    }
}
