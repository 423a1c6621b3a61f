//! Tables of roots of unity, which the host computes in double precision once for each length.

use crate::context::Context;
use crate::error::Result;
use dml_engine::AddressRange;
use dml_kernel::DType;
use std::cmp::Ordering;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

/// `exp(-2 pi i e / n)`: real and imaginary part, accurate to the error of the host's sine. The
/// angle is reduced to an eighth of a turn in integers. `n` is below 2^61.
pub fn root(e: u64, n: u64) -> (f64, f64) {
    let e = 4 * (e % n);
    let (quarter, rest) = (e / n, e % n);
    let angle = FRAC_PI_2 * (rest.min(n - rest) as f64 / n as f64);
    let (cos, sin) = match (2 * rest).cmp(&n) {
        Ordering::Less => (angle.cos(), angle.sin()),
        Ordering::Equal => (FRAC_1_SQRT_2, FRAC_1_SQRT_2),
        Ordering::Greater => (angle.sin(), angle.cos()),
    };
    match quarter {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    }
}

/// The twiddle factors between the stages of a transform with these radices. For every stage but
/// the first, if `done` is the product of the earlier radices, there are `radix - 1` rows of `done`
/// roots, `exp(-2 pi i row p / (done radix))` for `row` from 1. Of one length there is one division
/// into radices for each first one, the largest.
pub fn of_stages(cx: &Context, real_dtype: DType, radices: &[u32]) -> Result<AddressRange> {
    let length: u64 = radices.iter().map(|&r| u64::from(r)).product();
    let number = length | u64::from(radices[0]) << 32;
    table(cx, real_dtype, ["fft_stages_f32", "fft_stages_f64"], number, || {
        let mut roots = Vec::new();
        let mut done = u64::from(radices[0]);
        for &radix in &radices[1..] {
            let radix = u64::from(radix);
            roots.extend((1..radix).flat_map(|row| (0..done).map(move |p| root(row * p, done * radix))));
            done *= radix;
        }
        roots
    })
}

/// All roots of order `n` as products of two: entry `e` of the first `2^bits` entries is the root
/// with exponent `e`, and entry `2^bits + e` is the root with exponent `e * 2^bits`.
pub struct RootsOfUnity {
    /// The table.
    pub table: AddressRange,
    /// Bits of the first factor's exponent.
    pub bits: u32,
}

/// The roots of order `n`, which is below 2^32.
pub fn of_order(cx: &Context, real_dtype: DType, n: u64) -> Result<RootsOfUnity> {
    let bits = n.ilog2().div_ceil(2);
    let table = table(cx, real_dtype, ["fft_roots_f32", "fft_roots_f64"], n, || {
        let low = (0..1 << bits).map(|e| root(e, n));
        low.chain((0..=(n - 1) >> bits).map(|e| root(e << bits, n))).collect()
    })?;
    Ok(RootsOfUnity { table, bits })
}

/// The factors of a transform of `n` numbers by a convolution of length `length`: the chirp,
/// `c[k] = exp(-pi i k^2 / n)`, for each number, and the spectrum of the filter, which is the
/// conjugates of `c[k]` for `k` from `1 - n` to `n - 1`, modulo `length`.
pub fn of_convolution(cx: &Context, real_dtype: DType, n: u64, length: u64) -> Result<AddressRange> {
    table(cx, real_dtype, ["fft_chirp_f32", "fft_chirp_f64"], n, || {
        let chirp = |i: u64| root(i * i % (2 * n), 2 * n);
        let filter: Vec<_> = (0..length)
            .map(|i| match i.min(length - i) {
                i if i < n => (chirp(i).0, -chirp(i).1),
                _ => (0.0, 0.0),
            })
            .collect();
        (0..n).map(chirp).chain(spectrum(&filter)).collect()
    })
}

/// The transform of a few numbers, recursively by halves.
fn spectrum(x: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let n = x.len() as u64;
    let turned = |(re, im): (f64, f64), e: u64| {
        let (cos, sin) = root(e, n);
        (re * cos - im * sin, re * sin + im * cos)
    };
    let sum = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    if !n.is_multiple_of(2) {
        let term = |k: u64| (0..n).zip(x).map(move |(i, &z)| turned(z, i * k)).fold((0.0, 0.0), sum);
        return (0..n).map(term).collect();
    }
    let every_other = |from: usize| spectrum(&x.iter().skip(from).step_by(2).copied().collect::<Vec<_>>());
    let (even, odd) = (every_other(0), every_other(1));
    let half = (n / 2) as usize;
    (0..n).map(|k| sum(even[k as usize % half], turned(odd[k as usize % half], k))).collect()
}

fn table(
    cx: &Context,
    real_dtype: DType,
    names: [&'static str; 2],
    number: u64,
    roots: impl FnOnce() -> Vec<(f64, f64)>,
) -> Result<AddressRange> {
    if cx.infers() {
        return Ok(AddressRange::new(0, 0));
    }
    let double = real_dtype == DType::F64;
    let bytes = || -> Vec<u8> {
        let numbers = roots().into_iter().flat_map(|(re, im)| [re, im]);
        if double {
            numbers.flat_map(f64::to_ne_bytes).collect()
        } else {
            numbers.flat_map(|x| (x as f32).to_ne_bytes()).collect()
        }
    };
    Ok(cx.device.lookup_table(names[usize::from(double)], number, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::{root, spectrum};

    #[test]
    fn spectra_of_powers_are_peaks() {
        for n in [1, 5, 12, 40] {
            let x: Vec<_> = (0..n).map(|i| root(n - i % n, n)).collect();
            for (k, (re, im)) in spectrum(&x).into_iter().enumerate() {
                let expected = if k as u64 == 1 % n { n as f64 } else { 0.0 };
                assert!((re - expected).abs() < 1e-12 && im.abs() < 1e-12, "{n} {k}");
            }
        }
    }

    #[test]
    fn roots_are_exact_where_they_can_be() {
        assert_eq!(root(0, 7), (1.0, -0.0));
        for n in [4, 8, 12, 1 << 30] {
            assert_eq!(root(n / 4, n), (-0.0, -1.0));
            assert_eq!(root(n / 2, n), (-1.0, 0.0));
            assert_eq!(root(3 * n / 4, n), (0.0, 1.0));
        }
        let (re, im) = root(1, 8);
        assert_eq!(re, -im);
        for n in [3, 5, 7, 60, 1009] {
            for e in 0..n {
                let angle = -2.0 * std::f64::consts::PI * e as f64 / n as f64;
                let (re, im) = root(e, n);
                // The angle of this reference is rounded before it is reduced.
                assert!((re - angle.cos()).abs() < 3e-15 && (im - angle.sin()).abs() < 3e-15);
                assert_eq!(root(n - e, n), (re, if e == 0 { im } else { -im }));
            }
        }
    }
}
