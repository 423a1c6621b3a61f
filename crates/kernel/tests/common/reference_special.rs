//! The special functions compared with exact values: samples, errors in ulp, and the documented
//! bounds.

#![allow(dead_code)] // Each user needs a part.

use dml_kernel::interpret::Function;
use dml_kernel::{ScalarType, math};

/// Written by scripts/special_values.py.
const VALUES: &str = include_str!("../data/special.csv");

/// One special function.
pub struct Case {
    pub name: &'static str,
    /// The documented bounds for f32 and f64, in ulp of the exact value, or of the amplitude if
    /// that is larger.
    bounds: [f64; 2],
    /// For an oscillating function, about the amplitude at the first zeros; for a probability, the
    /// value below which it loses digits.
    amplitude: fn(f64) -> f64,
}

/// The worst sample of a function.
pub struct Worst {
    pub ulp: f64,
    pub at: Vec<f64>,
    /// The number of samples.
    pub samples: usize,
}

const fn case(name: &'static str, bounds: [f64; 2]) -> Case {
    Case { name, bounds, amplitude: |_| 0.0 }
}

const fn wave(name: &'static str, bounds: [f64; 2], amplitude: fn(f64) -> f64) -> Case {
    Case { name, bounds, amplitude }
}

/// Every function. The bounds are slightly above the largest error that was measured.
pub const CASES: &[Case] = &[
    wave("lgamma", [1.5, 1.0], |x| if x < 0.0 { 1.0 / 64.0 } else { 0.0 }),
    wave("digamma", [3.0, 2.5], |x| {
        if x < -10.0 {
            4.0
        } else if x < 0.0 {
            1.0 / 64.0
        } else {
            0.0
        }
    }),
    case("erfinv", [2.0, 1.5]),
    case("erfcx", [4.5, 2.0]),
    case("ndtri", [3.0, 2.5]),
    case("i0", [5.0, 2.0]),
    case("i0e", [4.5, 2.0]),
    case("i1", [5.0, 1.5]),
    case("i1e", [4.0, 2.0]),
    wave("j0", [8.0, 2.5], |_| 0.25),
    wave("j1", [6.5, 2.0], |_| 0.25),
    wave("y0", [12.5, 4.0], |_| 0.25),
    wave("y1", [7.0, 5.0], |_| 0.25),
    case("k0", [2.5, 2.0]),
    case("k0e", [3.5, 2.0]),
    case("k1", [2.5, 1.5]),
    case("k1e", [3.5, 2.0]),
    wave("airy_ai", [5.0, 2.5], |x| if x < -2.0 { 0.25 } else { 0.0 }),
    case("zeta", [9.0, 2.5]),
    wave("igamma", [700.0, 25.0], |_| 1e-30),
    wave("igammac", [700.0, 25.0], |_| 1e-30),
];

struct Sample {
    at: Vec<f64>,
    /// The exact value is the sum.
    exact: [f64; 2],
}

impl Case {
    /// The function of the library.
    pub fn function(&self, scalar: ScalarType) -> Function {
        let unary = math::special::UNARY.iter().find(|(name, _)| *name == self.name);
        let binary = math::special::BINARY.iter().find(|(name, _)| *name == self.name);
        match (unary, binary) {
            (Some((_, f)), _) => Function::unary(scalar, f),
            (_, Some((_, f))) => Function::binary(scalar, f),
            _ => panic!("the library has no {}", self.name),
        }
    }

    /// The documented bound.
    pub fn bound(&self, scalar: ScalarType) -> f64 {
        self.bounds[usize::from(scalar == ScalarType::F64)]
    }

    /// The points whose arguments and value a type represents.
    fn samples(&self, scalar: ScalarType) -> Vec<Sample> {
        let number = |cell: &str| cell.parse::<f64>().expect("a cell is a number");
        let lines = VALUES.lines().filter_map(|line| line.strip_prefix(self.name)?.strip_prefix(','));
        lines
            .filter_map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let at: Vec<f64> = cells[..2].iter().filter(|c| !c.is_empty()).map(|c| number(c)).collect();
                let exact = [number(cells[2]), number(cells[3])];
                let least = f64::from(f32::MIN_POSITIVE);
                let single = at.iter().all(|&x| f64::from(x as f32) == x)
                    && (least..=f64::from(f32::MAX)).contains(&exact[0].abs());
                (scalar == ScalarType::F64 || single).then_some(Sample { at, exact })
            })
            .collect()
    }

    /// The largest error over the function's points; for f32 also over `more` seeded random points
    /// between them, compared with the f64 function.
    pub fn worst(&self, scalar: ScalarType, more: usize) -> Worst {
        let mut samples = self.samples(scalar);
        if scalar == ScalarType::F32 {
            samples.extend(self.between(&samples, more));
        }
        let function = self.function(scalar);
        let results = evaluate(&function, scalar, &columns(&samples, function.inputs()));
        let mut worst = Worst { ulp: 0.0, at: Vec::new(), samples: samples.len() };
        for (sample, got) in samples.into_iter().zip(results) {
            let scale = sample.exact[0].abs().max((self.amplitude)(sample.at[0]));
            let digits = if scalar == ScalarType::F64 { 52 } else { 23 };
            let ulp = 2f64.powi(scale.log2().floor() as i32 - digits);
            let error = ((got - sample.exact[0]) - sample.exact[1]).abs() / ulp;
            if error.is_nan() || error > worst.ulp || worst.at.is_empty() {
                worst = Worst { ulp: error, at: sample.at, ..worst };
            }
        }
        worst
    }

    /// Random points between two random ones of `samples`, with the f64 function's values.
    fn between(&self, samples: &[Sample], n: usize) -> Vec<Sample> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: u64| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % below
        };
        let mut points = Vec::with_capacity(n);
        for _ in 0..n {
            let mut pick = || &samples[random(samples.len() as u64) as usize].at;
            let (a, b) = (pick(), pick());
            let part = random(1 << 32) as f64 / 2f64.powi(32);
            let mix = |(&a, &b): (&f64, &f64)| {
                let x = if a > 0.0 && b > 0.0 { a * (b / a).powf(part) } else { a + (b - a) * part };
                f64::from(x as f32)
            };
            points.push(Sample { at: a.iter().zip(b).map(mix).collect(), exact: [0.0; 2] });
        }
        let function = self.function(ScalarType::F64);
        let exact = evaluate(&function, ScalarType::F64, &columns(&points, function.inputs()));
        points.iter_mut().zip(exact).for_each(|(p, y)| p.exact[0] = y);
        let least = f64::from(f32::MIN_POSITIVE);
        points.retain(|p| (least..=f64::from(f32::MAX)).contains(&p.exact[0].abs()));
        points
    }
}

/// The arguments of samples, first ones and second ones.
fn columns(samples: &[Sample], inputs: usize) -> Vec<Vec<f64>> {
    (0..inputs).map(|i| samples.iter().map(|s| s.at[i]).collect()).collect()
}

/// A function's values, as f64.
pub fn evaluate(function: &Function, scalar: ScalarType, columns: &[Vec<f64>]) -> Vec<f64> {
    if scalar == ScalarType::F64 {
        return function.f64(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    let narrow: Vec<Vec<f32>> = columns.iter().map(|c| c.iter().map(|&x| x as f32).collect()).collect();
    function.f32(&narrow.iter().map(Vec::as_slice).collect::<Vec<_>>()).into_iter().map(f64::from).collect()
}
