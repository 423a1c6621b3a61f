//! The f32 functions: validation of their SPIR-V, errors against f64, special values.

mod common;
#[path = "common/reference.rs"]
mod reference;

use common::validated;
use dml_kernel::interpret::{Function, Subnormals};
use dml_kernel::{ScalarType, math};
use reference::CASES;

/// Random samples of each function.
const SAMPLES: usize = if cfg!(debug_assertions) { 200_000 } else { 3_000_000 };

#[test]
fn every_function_is_valid_spirv() {
    for scalar in [ScalarType::F32, ScalarType::F64] {
        for (_, f) in math::UNARY {
            validated(Function::unary(scalar, f).kernel());
        }
        for (_, f) in math::BINARY {
            validated(Function::binary(scalar, f).kernel());
        }
    }
}

#[test]
fn worst_errors_keep_the_promise() {
    let mut wrong = Vec::new();
    for case in CASES {
        let worst = case.worst(SAMPLES, 1);
        println!("{:<12} {:.4} at {:?}", case.name, worst.ulp, worst.at);
        if worst.ulp > case.bound {
            let (at, got, exact) = (&worst.at, worst.got, worst.exact);
            wrong.push(format!("{}{at:?}: {:.4} ulp; {got:e}, but it is {exact:e}", case.name, worst.ulp));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_cases_are_the_whole_library() {
    let names: Vec<&str> = math::UNARY.iter().map(|(n, _)| *n).chain(math::BINARY.iter().map(|(n, _)| *n)).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(names.iter().all(|n| CASES.iter().any(|c| c.name == *n)));
}

/// Every significand in release builds, every 61st in debug builds.
fn significands() -> impl Iterator<Item = u32> {
    (0..1 << 23).step_by(if cfg!(debug_assertions) { 61 } else { 1 })
}

#[test]
fn square_roots_of_every_significand_are_correctly_rounded() {
    let sqrt = Function::unary(ScalarType::F32, math::sqrt);
    for exponent in [127, 128] {
        let x: Vec<f32> = significands().map(|m| f32::from_bits(exponent << 23 | m)).collect();
        for (x, y) in x.iter().zip(sqrt.f32(&[&x])) {
            assert_eq!(y.to_bits(), x.sqrt().to_bits(), "sqrt({x})");
        }
    }
}

#[test]
fn quotients_by_every_significand_are_correctly_rounded() {
    let div = Function::binary(ScalarType::F32, math::div);
    for numerator in [0x00_0000, 0x00_0001, 0x2a_aaab, 0x55_5555, 0x7f_ffff] {
        let y: Vec<f32> = significands().map(|m| f32::from_bits(127 << 23 | m)).collect();
        let x = vec![f32::from_bits(130 << 23 | numerator); y.len()];
        for ((x, y), q) in x.iter().zip(&y).zip(div.f32(&[&x, &y])) {
            assert_eq!(q.to_bits(), (x / y).to_bits(), "{x} / {y}");
        }
    }
}

/// Pairs of numbers by their bits: random ones, subnormal ones, and pairs whose quotient or
/// remainder is subnormal.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let mut random = reference::Random(5);
    (0..SAMPLES as u32 / 4)
        .map(|i| {
            let (x, y) = (random.bits(), random.bits());
            let sign = x & 0x8000_0000;
            let small = |x: u32, y: u32| sign | (x & 0x7f_ffff) >> (y % 23);
            match i % 4 {
                0 => (x, y),
                1 => (small(x, y), small(y, x)),
                2 => (small(x, y), 0x3f80_0000 - (y & 0x3ff_ffff)),
                _ => (sign | 0x0080_0000 | x & 0x1ff_ffff, 0x3f80_0000 + (y & 0x0fff_ffff)),
            }
        })
        .map(|(x, y)| (f32::from_bits(x), f32::from_bits(y)))
        .unzip()
}

#[test]
fn subnormal_products_quotients_roots_and_remainders_are_correctly_rounded() {
    let (x, y) = pairs();
    let agree = |name: &str, got: Vec<f32>, wanted: fn(f32, f32) -> f32| {
        for ((x, y), got) in x.iter().zip(&y).zip(got) {
            let wanted = wanted(*x, *y);
            assert!(
                got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                "{name}({x:e}, {y:e}): {got:e}, {wanted:e}"
            );
        }
    };
    let mul = Function::binary(ScalarType::F32, math::mul).with(Subnormals::Flush);
    agree("mul", mul.f32(&[&x, &y]), |x, y| x * y);
    agree("div", Function::binary(ScalarType::F32, math::div).f32(&[&x, &y]), |x, y| x / y);
    agree("fmod", Function::binary(ScalarType::F32, math::fmod).f32(&[&x, &y]), |x, y| x % y);
    agree("sqrt", Function::unary(ScalarType::F32, math::sqrt).f32(&[&x]), |x, _| x.sqrt());
    agree("reciprocal", Function::unary(ScalarType::F32, math::reciprocal).f32(&[&x]), |x, _| 1.0 / x);
}

/// Numbers between two others, and those near 0 and 1 among them.
fn between(low: f32, high: f32) -> Vec<f32> {
    let steps = 20_000;
    let even = (0..=steps).map(|i| low + (high - low) * (i as f32 / steps as f32));
    let powers = (0..30).flat_map(|k| [2f32.powi(-k), 1.0 - 2f32.powi(-k)]);
    even.chain(powers.filter(|x| (low..=high).contains(x))).collect()
}

#[test]
fn ordinary_logarithms_are_the_others() {
    let x = between(f32::MIN_POSITIVE, 4.0);
    let bits = |f: math::Unary| {
        Function::unary(ScalarType::F32, f).f32(&[&x]).into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(bits(math::ordinary::log), bits(math::log));
}

#[test]
fn ordinary_roots_and_turns_are_near() {
    // Exact where a sine or cosine is 0, because the fraction of the last quarter turn is exact.
    let turn = |x: f32, shift: f64| {
        let quarters = 4.0 * f64::from(x);
        let k = quarters.round();
        let r = (quarters - k) * std::f64::consts::FRAC_PI_2;
        match (k + shift) as u32 % 4 {
            0 => r.sin(),
            1 => r.cos(),
            2 => -r.sin(),
            _ => -r.cos(),
        }
    };
    let near = |function: math::Unary, exact: &dyn Fn(f32) -> f64, high: f32, bound: f64| {
        let x = between(0.0, high);
        for (&x, y) in x.iter().zip(Function::unary(ScalarType::F32, function).f32(&[&x])) {
            let exact = exact(x);
            let ulp = f64::from((exact.abs() as f32).next_up()) - f64::from(exact.abs() as f32);
            assert!((f64::from(y) - exact).abs() <= bound * ulp, "{x:e}: {y:e}, but it is {exact:e}");
        }
    };
    near(|x| math::ordinary::turn_sin_cos(x)[0], &|x| turn(x, 0.0), 1.0, 1.8);
    near(|x| math::ordinary::turn_sin_cos(x)[1], &|x| turn(x, 1.0), 1.0, 1.8);
    let root = |x: f32| f64::from(x).sqrt();
    near(math::ordinary::sqrt, &root, 40.0, 1.0);
    near(math::ordinary::sqrt, &root, 1e-6, 1.0);
}
