//! The special functions beside exact values from a multiprecision library (data/special.csv), and valid SPIR-V.

mod common;
#[path = "common/reference_special.rs"]
mod reference;

use common::validated;
use dml_kernel::ScalarType;
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

#[test]
fn the_cases_are_the_whole_library() {
    let names = special::UNARY.iter().map(|(n, _)| *n).chain(special::BINARY.iter().map(|(n, _)| *n));
    assert!(names.eq(CASES.iter().map(|c| c.name)));
}
