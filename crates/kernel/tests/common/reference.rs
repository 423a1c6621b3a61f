//! The f32 functions compared with accurate f64 functions: samples, errors in ulp, and the
//! documented bounds.

#![allow(dead_code)] // Each user needs a part.

use dml_kernel::interpret::Function;
use dml_kernel::{ScalarType, math};

/// The f64 function that results are compared with: `libm`'s, because C libraries differ (MinGW's
/// `sin` is wrong for large numbers).
#[derive(Copy, Clone)]
pub enum Reference {
    Unary(fn(f64) -> f64),
    Binary(fn(f64, f64) -> f64),
}

/// One function of the math library.
pub struct Case {
    pub name: &'static str,
    pub reference: Reference,
    /// The documented bound of the error, in ulp.
    pub bound: f64,
    /// The range of most samples of the first argument, which are uniform in their bits and have
    /// both signs.
    pub range: (f32, f32),
}

/// The worst sample of a function.
pub struct Worst {
    /// Distance from the exact value, in ulp of the correctly rounded result.
    pub ulp: f64,
    pub at: Vec<f32>,
    pub got: f32,
    pub exact: f64,
    /// The number of inputs.
    pub samples: usize,
}

/// Every function. The bounds are slightly above the largest error that was ever measured.
pub const CASES: &[Case] = &[
    binary("mul", |x, y| x * y, 0.5, (0.001, 1000.0)),
    binary("div", |x, y| x / y, 0.5, (0.001, 1000.0)),
    unary("reciprocal", |x| 1.0 / x, 0.5, (0.001, 1000.0)),
    unary("sqrt", f64::sqrt, 0.5, (0.001, 1000.0)),
    unary("rsqrt", |x| if x == 0.0 { f64::INFINITY.copysign(x) } else { 1.0 / x.sqrt() }, 0.52, (0.001, 1000.0)),
    unary("exp", libm::exp, 0.75, (1e-5, 105.0)),
    unary("exp2", libm::exp2, 0.7, (1e-5, 151.0)),
    unary("expm1", libm::expm1, 1.0, (1e-5, 90.0)),
    unary("sigmoid", |x| 1.0 / (1.0 + libm::exp(-x)), 0.75, (1e-4, 105.0)),
    unary("tanh", libm::tanh, 0.85, (1e-5, 12.0)),
    unary("log", libm::log, 0.95, (0.01, 100.0)),
    unary("log2", libm::log2, 1.0, (0.01, 100.0)),
    unary("log10", libm::log10, 0.85, (0.01, 100.0)),
    unary("log1p", libm::log1p, 1.05, (1e-4, 100.0)),
    unary("erf", libm::erf, 1.3, (1e-4, 4.5)),
    unary("erfc", libm::erfc, 1.9, (1e-4, 10.5)),
    unary("sin", libm::sin, 0.95, (1e-4, 30000.0)),
    unary("cos", libm::cos, 0.95, (1e-4, 30000.0)),
    unary("tan", libm::tan, 1.45, (1e-4, 30000.0)),
    unary("asin", libm::asin, 0.7, (1e-4, 1.0)),
    unary("acos", libm::acos, 0.7, (1e-4, 1.0)),
    unary("atan", libm::atan, 0.8, (1e-4, 1000.0)),
    binary("atan2", libm::atan2, 0.85, (0.001, 1000.0)),
    unary("sinh", libm::sinh, 1.0, (1e-4, 90.0)),
    unary("cosh", libm::cosh, 0.8, (1e-4, 90.0)),
    binary("pow", libm::pow, 1.4, (0.1, 12.0)),
    binary("fmod", |x, y| if y.is_infinite() && x.is_finite() { x } else { x % y }, 0.0, (0.001, 1000.0)),
];

const fn unary(name: &'static str, f: fn(f64) -> f64, bound: f64, range: (f32, f32)) -> Case {
    Case { name, reference: Reference::Unary(f), bound, range }
}

const fn binary(name: &'static str, f: fn(f64, f64) -> f64, bound: f64, range: (f32, f32)) -> Case {
    Case { name, reference: Reference::Binary(f), bound, range }
}

/// The numbers at which functions are most likely to have errors.
pub fn edges() -> Vec<f32> {
    let mut all = vec![0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE];
    // Subnormal numbers of every length.
    all.extend((0..23).flat_map(|e| [1 << e, (1 << e) + 1, (2 << e) - 1, 0x2a_aaab >> e]).map(f32::from_bits));
    // Every power of two and its neighbours.
    for e in 1..255u32 {
        all.extend([-2i32, -1, 0, 1, 2, 0x40_0000].map(|d| f32::from_bits((e << 23).wrapping_add_signed(d))));
    }
    // Overflow, underflow and saturation of the exponential family and of erf; changes of method.
    for x in [
        88.02969,
        88.37626,
        88.722_84,
        89.41599,
        87.336_54,
        87.33655,
        103.97,
        126.0,
        127.0,
        128.0,
        149.0,
        150.0,
        9.01,
        9.19,
        9.2,
        10.05,
        3.83,
        3.9,
        4.0,
        17.3,
        16.6,
        0.3465,
        0.3466,
        std::f32::consts::FRAC_1_SQRT_2,
        std::f32::consts::SQRT_2,
        0.29289,
        0.41421,
        0.4142135,
        8192.0,
        8191.9,
    ] {
        all.extend((-3i32..=3).map(|d| f32::from_bits(f32::to_bits(x).wrapping_add_signed(d))));
    }
    // Integers, and multiples of pi/2 and of ln 2 with their neighbours.
    for k in 1..200u32 {
        all.push(k as f32);
        all.push(k as f32 + 0.5);
        for unit in [std::f64::consts::FRAC_PI_2, std::f64::consts::LN_2] {
            let x = (f64::from(k) * unit) as f32;
            all.extend((-1i32..=1).map(|d| f32::from_bits(x.to_bits().wrapping_add_signed(d))));
        }
    }
    // The f32 that is nearest to a multiple of pi/2 (16367173 * 2^72), and other hard cases.
    all.extend([16_367_173.0 * 2f32.powi(72), 1e10, 1e22, 3.4e38, 2.0f32.powi(24), 2.0f32.powi(100)]);
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

/// The generator xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// Uniform over the bits between two positive numbers, with a random sign.
    pub fn between(&mut self, (low, high): (f32, f32)) -> f32 {
        let (low, high) = (low.to_bits(), high.to_bits());
        let sign = self.bits() & 0x8000_0000;
        f32::from_bits((low + self.bits() % (high - low + 1)) | sign)
    }
}

impl Case {
    /// The function of the library.
    pub fn function(&self) -> Function {
        let unary = math::UNARY.iter().find(|(name, _)| *name == self.name);
        let binary = math::BINARY.iter().find(|(name, _)| *name == self.name);
        match (unary, binary) {
            (Some((_, f)), _) => Function::unary(ScalarType::F32, f),
            (_, Some((_, f))) => Function::binary(ScalarType::F32, f),
            _ => panic!("the library has no {}", self.name),
        }
    }

    /// Edge cases, then `n` random inputs: two thirds in the range, one third with random bits.
    pub fn samples(&self, n: usize, seed: u64) -> Vec<Vec<f32>> {
        let edges = edges();
        let mut random = Random(seed | 1);
        let mut x = Vec::with_capacity(n + edges.len());
        let mut y = Vec::new();
        match self.reference {
            Reference::Unary(_) => x.extend(&edges),
            Reference::Binary(_) => {
                // All pairs of special values, and each edge with a few others.
                let few: Vec<f32> = edges.iter().step_by(97).copied().chain(SPECIAL).collect();
                for &a in SPECIAL.iter().chain(&edges) {
                    for &b in &few {
                        x.push(a);
                        y.push(b);
                    }
                }
            }
        }
        for i in 0..n {
            x.push(if i % 3 == 0 { f32::from_bits(random.bits()) } else { random.between(self.range) });
            if let Reference::Binary(_) = self.reference {
                let partner = if self.name == "pow" { (0.01, 40.0) } else { self.range };
                y.push(if i % 3 == 0 { f32::from_bits(random.bits()) } else { random.between(partner) });
            }
        }
        if y.is_empty() { vec![x] } else { vec![x, y] }
    }

    /// The largest error over the edge cases and `n` random inputs.
    pub fn worst(&self, n: usize, seed: u64) -> Worst {
        let inputs = self.samples(n, seed);
        let all = self.function().f32(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut worst = Worst { ulp: 0.0, at: Vec::new(), got: 0.0, exact: 0.0, samples: all.len() };
        for (i, &got) in all.iter().enumerate() {
            let exact = self.exact(&inputs, i);
            let ulp = ulps(got, exact);
            if ulp > worst.ulp || worst.at.is_empty() {
                worst = Worst { ulp, at: inputs.iter().map(|x| x[i]).collect(), got, exact, ..worst };
            }
        }
        worst
    }

    /// The expected result.
    pub fn exact(&self, inputs: &[Vec<f32>], i: usize) -> f64 {
        match self.reference {
            Reference::Unary(f) => f(f64::from(inputs[0][i])),
            Reference::Binary(f) => f(f64::from(inputs[0][i]), f64::from(inputs[1][i])),
        }
    }
}

/// Zeros, ones, infinities, NaN and other numbers with special results.
pub const SPECIAL: [f32; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    16_777_215.0,
    16_777_216.0,
    -16_777_215.0,
    3e38,
    1e-37,
];

/// Error of `got` in ulp of the exact value rounded to f32; infinite if a special value or a sign
/// is wrong. For a result below the normal range, which may have been rounded twice, half an ulp is
/// subtracted.
pub fn ulps(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if rounded.is_nan() || got.is_nan() {
        return if rounded.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if rounded.is_infinite() || got.is_infinite() {
        // Infinity is one ulp above the largest number.
        let near = f64::from(f32::MAX) * (1.0 - f64::from(f32::EPSILON));
        let same =
            rounded == got || (exact.abs() > near && f64::from(got).abs() > near && exact * f64::from(got) > 0.0);
        return if same { 0.0 } else { f64::INFINITY };
    }
    if got == 0.0 && rounded == 0.0 {
        return if got.is_sign_negative() == rounded.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    if exact.abs() < f64::from(f32::MIN_POSITIVE) {
        let wrong_sign = got.is_sign_negative() != rounded.is_sign_negative();
        let error = (f64::from(got) - exact).abs() / f64::from(f32::from_bits(1));
        return if wrong_sign { f64::INFINITY } else { (error - 0.5).max(0.0) };
    }
    let exponent = ((rounded.to_bits() >> 23) & 0xff) as i32 - 127;
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}
