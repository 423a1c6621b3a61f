//! The f32 functions: valid SPIR-V, worst errors against f64, special values.

mod common;
#[path = "common/reference.rs"]
mod reference;

use common::validated;
use dml_kernel::interpret::Function;
use dml_kernel::{Scalar, math};
use reference::{CASES, subnormal, ulps};

/// Random samples of each function.
const SAMPLES: usize = if cfg!(debug_assertions) { 30_000 } else { 3_000_000 };

#[test]
fn every_function_is_valid_spirv() {
    for scalar in [Scalar::F32, Scalar::F64] {
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
        let inputs = case.samples(SAMPLES, 1);
        let got = case.function().f32(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (mut worst, mut at) = (0.0, 0);
        for (i, &got) in got.iter().enumerate() {
            if inputs.iter().any(|x| subnormal(x[i])) {
                continue;
            }
            let error = ulps(got, case.exact(&inputs, i));
            if error > worst {
                (worst, at) = (error, i);
            }
        }
        let x: Vec<f32> = inputs.iter().map(|x| x[at]).collect();
        println!("{:<12} {worst:.4} at {x:?}", case.name);
        if worst > case.bound {
            let (got, exact) = (got[at], case.exact(&inputs, at));
            wrong.push(format!("{}{x:?}: {worst:.4} ulp; {got:e}, but it is {exact:e}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
