//! The f64 functions: errors against a multiprecision reference, special values, and validation of
//! their SPIR-V.

mod common;
#[path = "common/reference_double.rs"]
mod reference;

use common::validated;
use reference::CASES;

/// `cargo test --release -- --ignored` takes more samples.
const SAMPLES: usize = 1500;

fn check(samples: usize) {
    let only = std::env::var("ONLY").ok();
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|c| only.as_ref().is_none_or(|o| o.split(',').any(|n| n == c.name))) {
        let start = std::time::Instant::now();
        let worst = case.worst(samples);
        let line = format!(
            "{:10} {:7.4} ulp at {:e}, {:e}: {:e} ({} samples, {} instructions, {:?})",
            case.name,
            worst.ulp,
            worst.at[0],
            worst.at[1],
            worst.got,
            worst.samples,
            case.function().instructions(),
            start.elapsed()
        );
        println!("{line}");
        // The measurement itself has rounding errors, so the bound of half an ulp has a margin.
        if worst.ulp.is_nan() || worst.ulp > case.bound + 1e-9 {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "beyond the bound:\n{}", failures.join("\n"));
}

#[test]
fn every_function_keeps_its_bound() {
    check(SAMPLES);
}

#[test]
#[ignore = "takes minutes"]
fn every_function_keeps_its_bound_on_many_samples() {
    check(std::env::var("SAMPLES").ok().and_then(|s| s.parse().ok()).unwrap_or(100_000));
}

#[test]
fn every_function_passes_the_validator() {
    for case in CASES {
        validated(case.function().kernel());
    }
}

/// Numbers with special results, and numbers at the edges of ranges.
const SPECIAL: [f64; 21] = [
    0.0,
    f64::MIN_POSITIVE,
    1e-310,
    5e-324,
    1e-300,
    1e-20,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    28.0,
    700.0,
    745.0,
    2147483648.0,
    9007199254740991.0,
    1e300,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

type C = fn(f64, f64) -> f64;

/// C's functions as in `libm`, which are the same on every system: the reference for special
/// values. Other values are near the exact ones.
const C_FUNCTIONS: [(&str, C); 27] = [
    ("mul", |x, y| x * y),
    ("div", |x, y| x / y),
    ("reciprocal", |x, _| 1.0 / x),
    ("sqrt", |x, _| x.sqrt()),
    ("rsqrt", |x, _| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }),
    ("exp", |x, _| libm::exp(x)),
    ("exp2", |x, _| libm::exp2(x)),
    ("expm1", |x, _| libm::expm1(x)),
    ("sigmoid", |x, _| if x < -50.0 { libm::exp(x) } else { 1.0 / (1.0 + libm::exp(-x)) }),
    ("log", |x, _| libm::log(x)),
    ("log1p", |x, _| libm::log1p(x)),
    ("log2", |x, _| libm::log2(x)),
    ("log10", |x, _| libm::log10(x)),
    ("sin", |x, _| libm::sin(x)),
    ("cos", |x, _| libm::cos(x)),
    ("tan", |x, _| libm::tan(x)),
    ("asin", |x, _| libm::asin(x)),
    ("acos", |x, _| libm::acos(x)),
    ("atan", |x, _| libm::atan(x)),
    ("atan2", |y, x| libm::atan2(y, x)),
    ("sinh", |x, _| libm::sinh(x)),
    ("cosh", |x, _| libm::cosh(x)),
    ("tanh", |x, _| libm::tanh(x)),
    ("erf", |x, _| special_erf(x)),
    ("erfc", |x, _| 1.0 - special_erf(x)),
    ("pow", |x, y| libm::pow(x, y)),
    ("fmod", |x, y| x % y),
];

/// erf where it is at a limit or nearly linear; elsewhere a wildcard.
fn special_erf(x: f64) -> f64 {
    match x.abs() {
        a if a >= 27.0 => 1f64.copysign(x),
        a if a < 1e-10 => x * std::f64::consts::FRAC_2_SQRT_PI,
        _ if x.is_nan() => x,
        _ => ANY,
    }
}

/// The wildcard for a result that another test checks.
const ANY: f64 = -123.0;

/// Whether two results are the same special value, or ordinary numbers with a distance of at most
/// `ulp`.
fn agree(got: f64, wanted: f64) -> bool {
    if wanted == ANY || wanted == 1.0 - ANY {
        return !got.is_nan();
    }
    if wanted.is_nan() || got.is_nan() {
        return wanted.is_nan() == got.is_nan();
    }
    if wanted.abs() < f64::MIN_POSITIVE {
        return got.is_sign_negative() == wanted.is_sign_negative() && (got - wanted).abs() <= 1e-323;
    }
    got == wanted || (got - wanted).abs() <= 1e-15 * wanted.abs()
}

#[test]
fn special_values_are_those_of_c() {
    let numbers: Vec<f64> = SPECIAL.iter().flat_map(|&x| [x, -x]).collect();
    let mut failures = Vec::new();
    for case in CASES {
        let c = C_FUNCTIONS.iter().find(|(name, _)| *name == case.name).expect("every function is C's").1;
        let function = case.function();
        let unary = function.inputs() == 1;
        let ys: &[f64] = if unary { &[0.0] } else { &numbers };
        let pairs: Vec<(f64, f64)> = numbers.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))).collect();
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let got = if unary { function.f64(&[&x]) } else { function.f64(&[&x, &y]) };
        for ((x, y), got) in x.into_iter().zip(y).zip(got) {
            let wanted = c(x, y);
            if !agree(got, wanted) {
                failures.push(format!("{}({x:e}, {y:e}) = {got:e}, not {wanted:e}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
