//! The functions of complex numbers: validation of their SPIR-V, and errors in f32 against f64.

mod common;

use common::validated;
use dml_kernel::ScalarType;
use dml_kernel::interpret::Function;
use dml_kernel::math::complex::{self, Complex};

/// The largest errors, in ulp of the result's magnitude in f32.
const BOUNDS: &[(&str, f64)] = &[("tanh", 8.0), ("tan", 8.0), ("log1p", 8.0), ("exp2", 40.0), ("expm1", 8.0)];
const USUAL: f64 = 6.0;

/// The real and the imaginary part of a function, each as a function of two numbers.
fn parts(scalar: ScalarType, f: complex::Unary) -> [Function; 2] {
    [
        Function::binary(scalar, move |x, y| f(Complex::new(x, y)).re),
        Function::binary(scalar, move |x, y| f(Complex::new(x, y)).im),
    ]
}

/// Numbers of ordinary size, near 0, near 1, and near the axes.
fn samples() -> (Vec<f32>, Vec<f32>) {
    let angle = |i: u32| (f64::from(i) * 2.399_963).sin_cos();
    let sizes = [1e-6, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 5.0, 30.0];
    (0..400u32)
        .map(|i| {
            let (size, (sin, cos)) = (sizes[i as usize % sizes.len()], angle(i));
            let narrow = if i % 7 == 0 { 1e-5 } else { 1.0 };
            ((size * cos) as f32, (size * sin * narrow) as f32)
        })
        .unzip()
}

#[test]
fn every_function_is_valid_spirv() {
    for scalar in [ScalarType::F32, ScalarType::F64] {
        for (_, f) in complex::UNARY {
            for part in parts(scalar, *f) {
                validated(part.kernel());
            }
        }
    }
}

#[test]
fn errors_keep_their_bounds() {
    let (x, y) = samples();
    let wide = |v: &[f32]| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    let (wide_x, wide_y) = (wide(&x), wide(&y));
    let mut wrong = Vec::new();
    for (name, f) in complex::UNARY {
        let narrow = parts(ScalarType::F32, *f).map(|part| part.f32(&[&x, &y]));
        let exact = parts(ScalarType::F64, *f).map(|part| part.f64(&[&wide_x, &wide_y]));
        let bound = BOUNDS.iter().find(|(known, _)| known == name).map_or(USUAL, |(_, bound)| *bound);
        for i in 0..x.len() {
            let far = (f64::from(narrow[0][i]) - exact[0][i]).hypot(f64::from(narrow[1][i]) - exact[1][i]);
            let error = far / exact[0][i].hypot(exact[1][i]) * 2f64.powi(24);
            if error.is_nan() || error > bound {
                wrong.push(format!("{name}({} {:+}i): {error:.1}", x[i], y[i]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn magnitudes_are_nearly_correctly_rounded() {
    let (x, y) = samples();
    let abs = Function::binary(ScalarType::F32, |x, y| complex::abs(Complex::new(x, y)));
    for ((x, y), got) in x.iter().zip(&y).zip(abs.f32(&[&x, &y])) {
        let exact = f64::from(*x).hypot(f64::from(*y));
        assert!((f64::from(got) - exact).abs() <= 1.01 * 2f64.powi(-24) * exact, "|{x} {y:+}i|: {got}, {exact}");
    }
}
