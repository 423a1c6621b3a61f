//! No result of the math library depends on what an adapter does with subnormals in its own arithmetic: the interpreter
//! gives the same bits where it keeps them and where it flushes them.

use dml_kernel::interpret::{Function, Subnormals};
use dml_kernel::{ScalarType, math};
use dml_testing::Random;

/// Random samples of each function, beside the edges.
const SAMPLES: usize = if cfg!(debug_assertions) { 2000 } else { 20_000 };

/// Zeros, subnormals, the ends of the normal range, moderate numbers, infinities and NaN.
fn edges(scalar: ScalarType) -> Vec<u64> {
    let (digits, top) = if scalar == ScalarType::F64 { (52, 0x7ffu64 << 52) } else { (23, 0xff << 23) };
    let mut all = vec![0, 1, 2, 3, 5, 1 << (digits - 1), (1 << digits) - 2, (1 << digits) - 1];
    all.extend([1 << digits, (1 << digits) + 1, 2 << digits, 30 << digits, top - 1, top, top + (1 << (digits - 1))]);
    all.extend(
        [1e-30, 1e-20, 1e-5, 0.1, 0.5, 0.999, 1.0, 2.0, 10.0, 87.5, 103.5, 1e5, 1e20, 1e37].map(|x| bits(scalar, x)),
    );
    if scalar == ScalarType::F64 {
        all.extend([1e-300, 1e-160, 708.5, 740.0, 1e154, 1e300].map(|x| bits(scalar, x)));
    }
    let sign = 1 << (8 * scalar.bytes() - 1);
    all.iter().flat_map(|&x| [x, x | sign]).collect()
}

fn bits(scalar: ScalarType, x: f64) -> u64 {
    if scalar == ScalarType::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) }
}

/// Edges with edges, then any bits: half of them subnormal, or of a moderate size.
fn samples(scalar: ScalarType, inputs: usize) -> Vec<Vec<u64>> {
    let edges = edges(scalar);
    let mut random = Random(11);
    let (width, digits) = if scalar == ScalarType::F64 { (64, 52) } else { (32, 23) };
    let mut any = |kind: u64| {
        let x = random.next_u64() >> (64 - width);
        let sign = x & 1 << (width - 1);
        match kind % 4 {
            0 => sign | (x & ((1 << digits) - 1)) >> (random.next_u64() % digits),
            1 => {
                sign | bits(
                    scalar,
                    (random.next_u64() as f64 / u64::MAX as f64) * [2.0, 10.0, 120.0, 800.0][(x & 3) as usize],
                )
            }
            _ => x,
        }
    };
    if inputs == 1 {
        let random: Vec<u64> = (0..SAMPLES as u64).map(any).collect();
        return vec![[edges, random].concat()];
    }
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for &a in &edges {
        for &b in &edges {
            x.push(a);
            y.push(b);
        }
    }
    for i in 0..SAMPLES as u64 {
        x.push(any(i));
        y.push(any(i / 4));
    }
    vec![x, y]
}

fn value(scalar: ScalarType, bits: u64) -> f64 {
    if scalar == ScalarType::F64 { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
}

fn evaluate(function: &Function, scalar: ScalarType, inputs: &[Vec<u64>]) -> Vec<u64> {
    if scalar == ScalarType::F64 {
        let x: Vec<Vec<f64>> = inputs.iter().map(|x| x.iter().map(|&w| f64::from_bits(w)).collect()).collect();
        let x: Vec<&[f64]> = x.iter().map(Vec::as_slice).collect();
        return function.f64(&x).iter().map(|r| r.to_bits()).collect();
    }
    let x: Vec<Vec<f32>> = inputs.iter().map(|x| x.iter().map(|&w| f32::from_bits(w as u32)).collect()).collect();
    let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
    function.f32(&x).iter().map(|r| u64::from(r.to_bits())).collect()
}

/// What differs, one line a function.
fn differences(scalar: ScalarType, functions: impl Iterator<Item = (&'static str, Function)>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, function) in functions {
        let inputs = samples(scalar, function.inputs());
        let kept = evaluate(&function, scalar, &inputs);
        let flushed = evaluate(&function.with(Subnormals::Flush), scalar, &inputs);
        let nan = |bits: u64| value(scalar, bits).is_nan();
        let bad: Vec<usize> =
            (0..kept.len()).filter(|&i| kept[i] != flushed[i] && !(nan(kept[i]) && nan(flushed[i]))).collect();
        if let Some(&i) = bad.first() {
            let x: Vec<f64> = inputs.iter().map(|x| value(scalar, x[i])).collect();
            let (k, f) = (value(scalar, kept[i]), value(scalar, flushed[i]));
            wrong.push(format!("{name} {x:?}: {k:e}, flushed {f:e}; {} of {} differ", bad.len(), kept.len()));
        }
    }
    wrong
}

#[test]
fn functions_do_not_depend_on_flushing() {
    for scalar in [ScalarType::F32, ScalarType::F64] {
        let unary = math::UNARY.iter().map(|&(name, f)| (name, Function::unary(scalar, f)));
        let binary = math::BINARY.iter().map(|&(name, f)| (name, Function::binary(scalar, f)));
        let wrong = differences(scalar, unary.chain(binary));
        assert!(wrong.is_empty(), "{scalar:?}: {wrong:#?}");
    }
}

#[test]
fn special_functions_do_not_depend_on_flushing() {
    for scalar in [ScalarType::F32, ScalarType::F64] {
        let unary = math::special::UNARY.iter().map(|&(name, f)| (name, Function::unary(scalar, f)));
        let binary = math::special::BINARY.iter().map(|&(name, f)| (name, Function::binary(scalar, f)));
        let wrong = differences(scalar, unary.chain(binary));
        assert!(wrong.is_empty(), "{scalar:?}: {wrong:#?}");
    }
}
