//! Transforms of a few numbers in the registers of an invocation.

use crate::fft::twiddles::root;
use dml_kernel::math::complex::{Complex, add, mul, sub};

/// The discrete Fourier transform of `x`: element `k` is the sum of `x[j] exp(-2 pi i j k / n)`.
pub fn transform<'b>(x: &[Complex<'b>]) -> Vec<Complex<'b>> {
    match x.len() {
        1 => x.to_vec(),
        2 => vec![add(x[0], x[1]), sub(x[0], x[1])],
        4 => radix4(x),
        n => match inner(n) {
            Some(radix) => composite(x, radix),
            None => prime(x),
        },
    }
}

/// `z` times `exp(-2 pi i e / n)`, with as few operations as possible.
pub fn times_root(z: Complex<'_>, e: usize, n: usize) -> Complex<'_> {
    let e = e % n;
    let eighth = |re, im| Complex::new(re, im).times(z.re.like(std::f64::consts::FRAC_1_SQRT_2));
    match 8 * e / n {
        0 if e == 0 => z,
        2 if 4 * e == n => Complex::new(z.im, -z.re),
        4 if 2 * e == n => Complex::new(-z.re, -z.im),
        6 if 4 * e == 3 * n => Complex::new(-z.im, z.re),
        1 if 8 * e == n => eighth(z.re + z.im, z.im - z.re),
        3 if 8 * e == 3 * n => eighth(z.im - z.re, -(z.re + z.im)),
        5 if 8 * e == 5 * n => eighth(-(z.re + z.im), z.re - z.im),
        7 if 8 * e == 7 * n => eighth(z.re - z.im, z.re + z.im),
        _ => {
            let (re, im) = root(e as u64, n as u64);
            mul(z, Complex::new(z.re.like(re), z.re.like(im)))
        }
    }
}

/// The radix for a composite length, 4 rather than 2.
fn inner(n: usize) -> Option<usize> {
    [4, 2, 3, 5, 7].into_iter().find(|&radix| n.is_multiple_of(radix) && n > radix)
}

/// The decomposition of Cooley and Tukey: transforms of every `rest`-th number, times twiddle
/// factors, then transforms across them.
fn composite<'b>(x: &[Complex<'b>], radix: usize) -> Vec<Complex<'b>> {
    let (n, rest) = (x.len(), x.len() / radix);
    let first: Vec<Vec<Complex>> =
        (0..rest).map(|c| transform(&(0..radix).map(|a| x[rest * a + c]).collect::<Vec<_>>())).collect();
    let mut result = vec![x[0]; n];
    for k in 0..radix {
        let row: Vec<Complex> = (0..rest).map(|c| times_root(first[c][k], c * k, n)).collect();
        for (l, z) in transform(&row).into_iter().enumerate() {
            result[k + radix * l] = z;
        }
    }
    result
}

fn radix4<'b>(x: &[Complex<'b>]) -> Vec<Complex<'b>> {
    let (a, b) = (add(x[0], x[2]), sub(x[0], x[2]));
    let (c, d) = (add(x[1], x[3]), times_root(sub(x[1], x[3]), 1, 4));
    vec![add(a, c), add(b, d), sub(a, c), sub(b, d)]
}

/// A transform of odd prime length: pairs of numbers at symmetric positions share cosines, and have
/// opposite sines.
fn prime<'b>(x: &[Complex<'b>]) -> Vec<Complex<'b>> {
    let n = x.len();
    let half = n / 2;
    let pairs: Vec<(Complex, Complex)> = (1..=half).map(|j| (add(x[j], x[n - j]), sub(x[j], x[n - j]))).collect();
    let mut result = vec![pairs.iter().fold(x[0], |sum, &(s, _)| add(sum, s)); n];
    for k in 1..=half {
        let weights = |j: usize| root((j * k) as u64, n as u64);
        let (mut even, mut odd) = (x[0], None);
        for (j, &(s, d)) in (1..).zip(&pairs) {
            let (cos, sin) = weights(j);
            even = add(even, s.times(s.re.like(cos)));
            let term = d.times(d.re.like(sin));
            odd = Some(odd.map_or(term, |sum| add(sum, term)));
        }
        // i times the sum of the sine terms.
        let odd = odd.map_or(even.like(0.0), |z| Complex::new(-z.im, z.re));
        result[k] = add(even, odd);
        result[n - k] = sub(even, odd);
    }
    result
}
