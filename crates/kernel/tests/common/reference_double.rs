//! The f64 functions compared with a multiprecision reference: ranges of samples, exact values,
//! documented bounds.

#![allow(dead_code)]

use astro_float::{BigFloat, Consts, RoundingMode, Sign};
use dml_kernel::builder::Value;
use dml_kernel::interpret::Function;
use dml_kernel::math;
use dml_kernel::types::ScalarType;
use dml_testing::Random;

/// Bits of precision of the reference.
const P: usize = 256;
const RM: RoundingMode = RoundingMode::None;

/// One function of the math library in f64.
pub struct Case {
    /// The name in `math`.
    pub name: &'static str,
    /// The documented bound, in ulp of the correctly rounded result.
    pub bound: f64,
    kernel: fn() -> Function,
    reference: Reference,
    samples: &'static [Samples],
}

/// The worst sample of a function.
pub struct Worst {
    /// The distance from the exact value, in ulp of the result.
    pub ulp: f64,
    /// The arguments; the second is 0 for functions of one number.
    pub at: [f64; 2],
    /// The function's result.
    pub got: f64,
    /// The number of samples.
    pub samples: usize,
}

enum Reference {
    Unary(fn(&mut Consts, &BigFloat) -> BigFloat),
    Binary(fn(&mut Consts, f64, f64) -> BigFloat),
}

/// The range of samples. `Bits` is uniform over the bit patterns between two numbers of one sign.
#[derive(Copy, Clone)]
enum Samples {
    Linear(f64, f64),
    Bits(f64, f64),
    /// As `Bits`, with both signs.
    Signed(f64, f64),
    /// The numbers nearest to multiples of a quarter turn, up to this multiple.
    QuarterTurns(f64),
    /// The number and its neighbours.
    Near(f64),
    /// Both arguments are from these ranges.
    Pairs(fn(&mut Random) -> [f64; 2]),
}
use Samples::*;

const MAX: f64 = f64::MAX;
const TINY: f64 = f64::MIN_POSITIVE;

macro_rules! unary {
    ($name:ident, $bound:expr, $reference:expr, $samples:expr) => {
        Case {
            name: stringify!($name),
            bound: $bound,
            kernel: || Function::unary(ScalarType::F64, |x: Value<'_>| math::$name(x)),
            reference: Reference::Unary($reference),
            samples: $samples,
        }
    };
}

macro_rules! binary {
    ($name:ident, $bound:expr, $reference:expr, $samples:expr) => {
        Case {
            name: stringify!($name),
            bound: $bound,
            kernel: || Function::binary(ScalarType::F64, |x: Value<'_>, y: Value<'_>| math::$name(x, y)),
            reference: Reference::Binary($reference),
            samples: $samples,
        }
    };
}

/// Every function.
pub const CASES: &[Case] = &[
    binary!(mul, 0.5, |_, x, y| big(x).mul(&big(y), P, RM), &[Pairs(mantissas), Pairs(anything)]),
    binary!(div, 0.5, |_, x, y| big(x).div(&big(y), P, RM), &[Pairs(mantissas), Pairs(anything)]),
    unary!(reciprocal, 0.5, |_, x| x.reciprocal(P, RM), &[Linear(1.0, 2.0), Signed(5e-324, MAX)]),
    unary!(sqrt, 0.5, |_, x| x.sqrt(P, RM), &[Linear(1.0, 4.0), Bits(5e-324, MAX), Near(1.0), Near(4.0)]),
    unary!(rsqrt, 1.0, |_, x| x.sqrt(P, RM).reciprocal(P, RM), &[Linear(1.0, 4.0), Bits(5e-324, MAX), Near(1.0)]),
    unary!(exp, 1.0, |c, x| x.exp(P, RM, c), &[Linear(-2.0, 2.0), Linear(-750.0, 715.0), Signed(1e-20, 1.0)]),
    unary!(exp2, 2.0, exp2, &[Linear(-2.0, 2.0), Linear(-1080.0, 1026.0), Signed(1e-20, 1.0)]),
    unary!(expm1, 2.0, expm1, &[Linear(-2.0, 2.0), Linear(-60.0, 715.0), Signed(TINY, 1.0)]),
    unary!(sigmoid, 2.0, sigmoid, &[Linear(-4.0, 4.0), Linear(-750.0, 50.0), Signed(1e-20, 1.0)]),
    unary!(log, 1.0, |c, x| x.ln(P, RM, c), &[Linear(0.5, 2.0), Bits(5e-324, MAX), Near(1.0)]),
    unary!(log1p, 2.0, log1p, &[Linear(-0.999, 3.0), Signed(TINY, 0.9), Bits(1e-3, MAX), Bits(-0.9, -1.0 + 1.2e-16)]),
    unary!(log2, 2.0, |c, x| x.log2(P, RM, c), &[Linear(0.5, 2.0), Bits(5e-324, MAX), Near(1.0)]),
    unary!(log10, 2.0, |c, x| x.log10(P, RM, c), &[Linear(0.5, 2.0), Bits(5e-324, MAX), Near(1.0)]),
    unary!(sin, 2.0, |c, x| x.sin(P, RM, c), ANGLES),
    unary!(cos, 2.0, |c, x| x.cos(P, RM, c), ANGLES),
    unary!(tan, 2.0, |c, x| x.tan(P, RM, c), ANGLES),
    unary!(asin, 2.0, |c, x| x.asin(P, RM, c), &[Linear(-1.0, 1.0), Signed(TINY, 1.0), Near(0.5), Bits(0.9999, 1.0)]),
    unary!(acos, 2.0, |c, x| x.acos(P, RM, c), &[Linear(-1.0, 1.0), Signed(1e-20, 1.0), Near(0.5), Bits(0.9999, 1.0)]),
    unary!(atan, 2.0, |c, x| x.atan(P, RM, c), &[Linear(-4.0, 4.0), Signed(TINY, MAX)]),
    binary!(atan2, 2.0, atan2, &[Pairs(plane), Pairs(anything)]),
    unary!(sinh, 2.0, sinh, &[Linear(-4.0, 4.0), Linear(-711.0, 711.0), Signed(TINY, 1.0)]),
    unary!(cosh, 2.0, cosh, &[Linear(-4.0, 4.0), Linear(-711.0, 711.0), Signed(1e-20, 1.0)]),
    unary!(tanh, 2.0, tanh, &[Linear(-4.0, 4.0), Linear(-25.0, 25.0), Signed(TINY, 1.0)]),
    unary!(erf, 2.0, erf, &[Linear(-3.0, 3.0), Linear(-6.5, 6.5), Signed(1e-300, 1.0)]),
    unary!(erfc, 2.0, erfc, &[Linear(-3.0, 3.0), Linear(-7.0, 27.3), Signed(1e-20, 1.0)]),
    binary!(pow, 2.0, pow, &[Pairs(powers), Pairs(near_one), Pairs(integer_powers)]),
    binary!(fmod, 0.0, |_, x, y| big(x % y), &[Pairs(mantissas), Pairs(plane), Pairs(anything)]),
];

const ANGLES: &[Samples] =
    &[Linear(-10.0, 10.0), Linear(-1e5, 1e5), Signed(TINY, MAX), QuarterTurns(1e6), QuarterTurns(1e300)];

impl Case {
    /// The function, ready to be evaluated.
    pub fn function(&self) -> Function {
        (self.kernel)()
    }

    /// The worst of about `n` seeded samples, and the edges of every range.
    pub fn worst(&self, n: usize) -> Worst {
        let mut consts = Consts::new().expect("memory for constants");
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut inputs: Vec<[f64; 2]> = Vec::new();
        for samples in self.samples {
            samples.take(n / self.samples.len(), &mut random, &mut inputs, &mut consts);
        }
        let x: Vec<f64> = inputs.iter().map(|v| v[0]).collect();
        let y: Vec<f64> = inputs.iter().map(|v| v[1]).collect();
        let function = self.function();
        let results = if function.inputs() == 1 { function.f64(&[&x]) } else { function.f64(&[&x, &y]) };
        let mut worst = Worst { ulp: 0.0, at: [0.0; 2], got: 0.0, samples: results.len() };
        for (at, got) in inputs.into_iter().zip(results) {
            let exact = match self.reference {
                Reference::Unary(f) => f(&mut consts, &big(at[0])),
                Reference::Binary(f) => f(&mut consts, at[0], at[1]),
            };
            let ulp = distance(got, &exact);
            if ulp.is_nan() || ulp > worst.ulp {
                worst = Worst { ulp, at, got, ..worst };
            }
        }
        worst
    }
}

/// Samples of a function's arguments.
trait Sampling {
    /// Uniform in `[a, b)`.
    fn between(&mut self, a: f64, b: f64) -> f64;
    /// Uniform among the floats from `a` to `b`, both positive.
    fn bits(&mut self, a: f64, b: f64) -> f64;
    /// As [`bits`](Self::bits), of either sign.
    fn signed(&mut self, a: f64, b: f64) -> f64;
}

impl Sampling for Random {
    fn between(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.unit()
    }

    fn bits(&mut self, a: f64, b: f64) -> f64 {
        let (a, b) = (a.to_bits(), b.to_bits());
        f64::from_bits(a + self.next_u64() % (b - a + 1))
    }

    fn signed(&mut self, a: f64, b: f64) -> f64 {
        let x = self.bits(a, b);
        if self.next_u64() & 1 == 0 { x } else { -x }
    }
}

impl Samples {
    fn take(self, n: usize, random: &mut Random, to: &mut Vec<[f64; 2]>, c: &mut Consts) {
        let mut one = |x: f64| to.push([x, 0.0]);
        match self {
            Linear(a, b) => {
                one(a);
                one(b);
                (0..n).for_each(|_| one(random.between(a, b)));
            }
            Bits(a, b) => {
                one(a);
                one(b);
                (0..n).for_each(|_| one(random.bits(a, b)));
            }
            Signed(a, b) => {
                [a, b, -a, -b].into_iter().for_each(&mut one);
                (0..n).for_each(|_| one(random.signed(a, b)));
            }
            QuarterTurns(most) => {
                let quarter = c.pi(1536, RM).div(&BigFloat::from_word(2, 1536), 1536, RM);
                for _ in 0..n {
                    let turns = random.bits(1.0, most).floor();
                    one(nearest(&quarter.mul(&BigFloat::from_f64(turns, 1536), 1536, RM)));
                }
            }
            Near(x) => {
                let bits = x.to_bits();
                (1..9).for_each(|i| [bits - i, bits + i].into_iter().for_each(|b| one(f64::from_bits(b))));
                one(x);
            }
            Pairs(f) => (0..n).for_each(|_| to.push(f(random))),
        }
    }
}

fn mantissas(r: &mut Random) -> [f64; 2] {
    [r.between(1.0, 2.0), r.between(1.0, 2.0)]
}

fn plane(r: &mut Random) -> [f64; 2] {
    [r.between(-8.0, 8.0), r.between(-8.0, 8.0)]
}

fn anything(r: &mut Random) -> [f64; 2] {
    [r.signed(5e-324, MAX), r.signed(5e-324, MAX)]
}

fn powers(r: &mut Random) -> [f64; 2] {
    let x = r.bits(5e-324, MAX);
    [x, r.between(-1080.0, 1030.0) / x.log2()]
}

fn near_one(r: &mut Random) -> [f64; 2] {
    let x = 1.0 + r.signed(1e-15, 0.5);
    [x, r.between(-1080.0, 1030.0) / x.log2()]
}

fn integer_powers(r: &mut Random) -> [f64; 2] {
    [r.between(-10.0, 10.0), r.between(-300.0, 300.0).round()]
}

// ---- exact values

fn big(x: f64) -> BigFloat {
    if x.abs() >= TINY || x == 0.0 {
        return BigFloat::from_f64(x, P);
    }
    // The library converts subnormal numbers wrongly.
    let mut lifted = BigFloat::from_f64(x * 2f64.powi(100), P);
    let exponent = lifted.exponent().unwrap_or(0);
    lifted.set_exponent(exponent - 100);
    lifted
}

fn small(x: &BigFloat) -> bool {
    x.is_zero() || x.exponent().is_some_and(|e| e < -20)
}

/// `sum of x^i * 1/c(i)` for i from 1; for |x| < 2^-20.
fn series(x: &BigFloat, c: impl Fn(i32) -> f64) -> BigFloat {
    (1..14).rev().fold(big(0.0), |sum, i| {
        let term = big(1.0).div(&big(c(i)), P, RM);
        sum.add(&term, P, RM).mul(x, P, RM)
    })
}

fn exp2(c: &mut Consts, x: &BigFloat) -> BigFloat {
    let ln2 = c.ln_2(P, RM);
    x.mul(&ln2, P, RM).exp(P, RM, c)
}

fn expm1(c: &mut Consts, x: &BigFloat) -> BigFloat {
    if small(x) {
        return series(x, |i| (1..=i).map(f64::from).product());
    }
    x.exp(P, RM, c).sub(&big(1.0), P, RM)
}

fn log1p(c: &mut Consts, x: &BigFloat) -> BigFloat {
    if small(x) {
        return series(x, |i| if i % 2 == 1 { f64::from(i) } else { f64::from(-i) });
    }
    // 1 + x has up to 1100 bits.
    big(1.0).add(x, 1200, RM).ln(P, RM, c)
}

fn sigmoid(c: &mut Consts, x: &BigFloat) -> BigFloat {
    let e = x.neg().exp(P, RM, c);
    big(1.0).add(&e, 1400, RM).reciprocal(P, RM)
}

/// `(e^x - e^-x) / 2` from `expm1`.
fn sinh(c: &mut Consts, x: &BigFloat) -> BigFloat {
    expm1(c, x).sub(&expm1(c, &x.neg()), P, RM).div(&big(2.0), P, RM)
}

fn cosh(c: &mut Consts, x: &BigFloat) -> BigFloat {
    x.exp(P, RM, c).add(&x.neg().exp(P, RM, c), P, RM).div(&big(2.0), P, RM)
}

fn tanh(c: &mut Consts, x: &BigFloat) -> BigFloat {
    let e = expm1(c, &x.add(x, P, RM));
    e.div(&e.add(&big(2.0), P, RM), P, RM)
}

fn atan2(c: &mut Consts, y: f64, x: f64) -> BigFloat {
    let angle = big(y.abs()).div(&big(x.abs()), P, RM).atan(P, RM, c);
    let angle = if x > 0.0 { angle } else { c.pi(P, RM).sub(&angle, P, RM) };
    if y > 0.0 { angle } else { angle.neg() }
}

fn pow(c: &mut Consts, x: f64, y: f64) -> BigFloat {
    let magnitude = big(x.abs()).ln(P, RM, c).mul(&big(y), P, RM).exp(P, RM, c);
    if x < 0.0 && y % 2.0 != 0.0 { magnitude.neg() } else { magnitude }
}

/// `2 / sqrt(pi) * e^(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1))`: all terms have the same
/// sign.
fn erf(c: &mut Consts, x: &BigFloat) -> BigFloat {
    if x.abs_cmp(&big(5.0)) == Some(1) {
        let positive = big(1.0).sub(&erfc(c, &x.abs()), P, RM);
        return if x.is_negative() { positive.neg() } else { positive };
    }
    let square = x.mul(x, P, RM);
    let twice = square.add(&square, P, RM);
    let (mut term, mut sum) = (x.clone(), x.clone());
    for n in 1..400 {
        term = term.mul(&twice, P, RM).div(&big(f64::from(2 * n + 1)), P, RM);
        sum = sum.add(&term, P, RM);
        if term.is_zero() || term.exponent() < sum.exponent().map(|e| e - 200) {
            break;
        }
    }
    let scale = square.neg().exp(P, RM, c).div(&c.pi(P, RM).sqrt(P, RM), P, RM);
    sum.mul(&scale, P, RM).mul(&big(2.0), P, RM)
}

/// Below 5 from [`erf`]; above by the continued fraction
/// `e^(-x^2) / sqrt(pi) / (x + (1/2) / (x + (2/2) / (x + ..)))`.
fn erfc(c: &mut Consts, x: &BigFloat) -> BigFloat {
    if x.cmp(&big(5.0)) != Some(1) {
        return big(1.0).sub(&erf(c, x), P, RM);
    }
    let fraction = (1..100).rev().fold(x.clone(), |tail, n| big(f64::from(n) / 2.0).div(&tail, P, RM).add(x, P, RM));
    let scale = x.mul(x, P, RM).neg().exp(P, RM, c).div(&c.pi(P, RM).sqrt(P, RM), P, RM);
    scale.div(&fraction, P, RM)
}

// ---- distances

/// The double near a number: its leading 64 bits, rounded.
fn nearest(x: &BigFloat) -> f64 {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else { return f64::NAN };
    let Some(&top) = words.last() else { return 0.0 };
    let half = exponent / 2;
    let magnitude = top as f64 * 2f64.powi(-64) * 2f64.powi(half) * 2f64.powi(exponent - half);
    if sign == Sign::Neg { -magnitude } else { magnitude }
}

/// The distance of `got` from the exact value, in ulp of the exact value as a double; infinity
/// counts as 2^1024. For an exact value below the normal numbers, which may have been rounded
/// twice, half an ulp is subtracted.
pub fn distance(got: f64, exact: &BigFloat) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return f64::NAN;
    }
    if exact.is_zero() {
        return if got == 0.0 { 0.0 } else { f64::INFINITY };
    }
    let exponent = exact.exponent().unwrap_or(i32::MAX);
    let overflow = exponent > 1024;
    if overflow && got.is_infinite() && (got < 0.0) == exact.is_negative() {
        return 0.0;
    }
    let ulp = (exponent - 53).max(-1074);
    let mut value = big(got.clamp(-MAX, MAX));
    if got.is_infinite() {
        value = BigFloat::from_word(1, P);
        value.set_exponent(1025);
        value = if got < 0.0 { value.neg() } else { value };
    }
    let mut difference = value.sub(exact, 1400, RM);
    if difference.is_zero() {
        return 0.0;
    }
    let at = difference.exponent().unwrap_or(0);
    difference.set_exponent(at - ulp);
    let units = nearest(&difference).abs();
    if exponent < -1021 { (units - 0.5).max(0.0) } else { units }
}
