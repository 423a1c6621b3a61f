//! The special functions compared with exact values from a multiprecision library
//! (data/special.csv), and validation of their SPIR-V.

mod common;
#[path = "common/reference_special.rs"]
mod reference;

use common::validated;
use dml_kernel::ScalarType;
use dml_kernel::interpret::Function;
use dml_kernel::math::special;
use reference::CASES;

/// Random samples of each f32 function.
const SAMPLES: usize = if cfg!(debug_assertions) { 5000 } else { 200_000 };

#[test]
fn every_function_keeps_its_bounds() {
    let mut wrong = Vec::new();
    for case in CASES {
        for scalar in [ScalarType::F32, ScalarType::F64] {
            let worst = case.worst(scalar, SAMPLES);
            let line = format!("{:8} {scalar:?} {:8.3} ulp at {:?}", case.name, worst.ulp, worst.at);
            println!("{line}");
            if worst.ulp.is_nan() || worst.ulp > case.bound(scalar) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_function_passes_the_validator() {
    for case in CASES {
        for scalar in [ScalarType::F32, ScalarType::F64] {
            validated(case.function(scalar).kernel());
        }
    }
}

/// Sample gradients with a closed form: of the gamma distribution at its mean for large shapes, and
/// of the beta distribution with the distribution function `x^a`.
#[test]
fn gradients_of_samples_are_those_of_closed_forms() {
    for scalar in [ScalarType::F32, ScalarType::F64] {
        let gamma = Function::binary(scalar, special::gamma_sample_gradient);
        let beta = Function::binary(scalar, |x, a| special::beta_sample_gradient(x, a, a + 1.0));
        validated(gamma.kernel());
        validated(beta.kernel());
        let epsilon = if scalar == ScalarType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        // 1 / (3 a) is the square of the skewness over 12.
        for a in [1e4, 1e6, 1e8, 1e12] {
            let got = reference::evaluate(&gamma, scalar, &[vec![a], vec![a]])[0];
            assert!((got - (1.0 + 1.0 / (6.0 * a))).abs() < 1.0 / (a * a) + 8.0 * epsilon, "{a:e}: {got}");
        }
        // If `total - a` is 1, the beta distribution's function is x^a, with the derivative x^a
        // log(x).
        for a in [0.125, 1.0, 2.5, 40.0] {
            for x in [0.0078125, 0.25, 0.625, 0.984375] {
                let got = reference::evaluate(&beta, scalar, &[vec![x], vec![a]])[0];
                let exact = -x * f64::ln(x) / (a * (1.0 - x));
                assert!((got / exact - 1.0).abs() < 64.0 * a.max(1.0) * epsilon, "{x}, {a}: {got}, not {exact}");
            }
        }
    }
}

#[test]
fn the_cases_are_the_whole_library() {
    let names = special::UNARY.iter().map(|(n, _)| *n).chain(special::BINARY.iter().map(|(n, _)| *n));
    assert!(names.eq(CASES.iter().map(|c| c.name)));
}

/// Arguments with an exact, infinite or bounded result, which must have no error.
#[test]
fn limits_are_the_functions_own() {
    let limits: [(&str, f64, f64); 16] = [
        ("j0", 0.0, 1.0),
        ("j0", 1e-30, 1.0),
        ("j1", 0.0, 0.0),
        ("j1", 2f64.powi(-30), 2f64.powi(-31)),
        ("i0", 0.0, 1.0),
        ("i0", 1e30, f64::INFINITY),
        ("i0", 3.4e38, f64::INFINITY),
        ("i1", 1e30, f64::INFINITY),
        ("i1", -3.4e38, f64::NEG_INFINITY),
        ("k0", 1e30, 0.0),
        ("k1", 3.4e38, 0.0),
        ("airy_ai", 1e30, 0.0),
        ("lgamma", -1e-30, 30.0 * std::f64::consts::LN_10),
        ("digamma", 2f64.powi(-100), -(2f64.powi(100))),
        ("erfinv", 0.0, 0.0),
        ("ndtri", 0.5, 0.0),
    ];
    for scalar in [ScalarType::F32, ScalarType::F64] {
        for (name, x, exact) in limits {
            let case = CASES.iter().find(|c| c.name == name).expect("the function has a case");
            let got = reference::evaluate(&case.function(scalar), scalar, &[vec![x]])[0];
            let near = exact.is_finite() && (got - exact).abs() <= 1e-7 * exact.abs() && exact.fract() != 0.0;
            assert!(got == exact || near, "{name}({x:e}) of {scalar:?}: {got:e}, not {exact:e}");
        }
        let airy = CASES.iter().find(|c| c.name == "airy_ai").expect("the function has a case");
        let far: Vec<f64> = (1..38).map(|e| -(10f64.powi(e))).collect();
        let values = reference::evaluate(&airy.function(scalar), scalar, std::slice::from_ref(&far));
        for (x, y) in far.iter().zip(values) {
            assert!(y.abs() <= 0.6 * x.abs().powf(-0.25), "airy_ai({x:e}) of {scalar:?}: {y:e}");
        }
    }
}
