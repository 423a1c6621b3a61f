//! No result of the math library depends on an adapter's treatment of subnormal numbers: the
//! interpreter has the same results whether it keeps or flushes them.

use dml_kernel::interpret::{Function, Subnormals};
use dml_kernel::{ScalarType, Value, math};
use dml_testing::Random;
use std::cmp::Ordering;

/// Random samples of each function, in addition to the edges.
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

/// Pairs of edges, then random bits: half of them subnormal, or of a moderate size.
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

/// The differences, one line per function.
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

/// Sums, products with ordinary factors, conversions.
#[test]
fn arithmetic_that_keeps_subnormals() {
    let (keep, flush) = (Subnormals::Keep, Subnormals::Flush);
    let x: Vec<f32> = (0..2000u32).map(|i| f32::from_bits((i * 9001) ^ (i << 31))).collect();
    let y: Vec<f32> = x.iter().rev().copied().collect();
    let halves = vec![0.640_625; x.len()];
    for mode in [keep, flush] {
        let of = |f: math::Binary| Function::binary(ScalarType::F32, f).with(mode);
        let sums = of(math::special::sum).f32(&[&x, &y]);
        let products = of(math::special::product).f32(&[&x, &halves]);
        for i in 0..x.len() {
            assert_eq!(sums[i], x[i] + y[i]);
            // These are rounded twice.
            assert!(products[i].to_bits().abs_diff((x[i] * halves[i]).to_bits()) <= 1, "{:e}", x[i]);
        }
    }
    let x: Vec<f64> = (0..2000u64).map(|i| f64::from_bits((i * 0x0017_3219_8765_4321) ^ (i << 63))).collect();
    let y: Vec<f64> = x.iter().rev().copied().collect();
    for mode in [keep, flush] {
        let sums = Function::binary(ScalarType::F64, math::special::sum).with(mode).f64(&[&x, &y]);
        let small = |x: f64| x.abs() < 1e-270;
        for i in (0..x.len()).filter(|&i| small(x[i]) && small(y[i])) {
            assert_eq!(sums[i], x[i] + y[i], "{:e} + {:e}", x[i], y[i]);
        }
    }
}

/// The high bits of an f32 as an f64.
fn widened(x: Value<'_>) -> Value<'_> {
    (x.cast(ScalarType::F64).bitcast(ScalarType::U64) >> 20).cast(ScalarType::U32).bitcast(ScalarType::F32)
}

/// The bits of an f64 converted to f32, in the low bits of an f64.
fn narrowed(x: Value<'_>) -> Value<'_> {
    x.cast(ScalarType::F32).bitcast(ScalarType::U32).cast(ScalarType::U64).bitcast(ScalarType::F64)
}

#[test]
fn conversions_keep_subnormals() {
    let wide = Function::unary(ScalarType::F32, widened).with(Subnormals::Flush);
    let single: Vec<f32> = (0..400u32).map(|i| f32::from_bits((i * 60_001) ^ (i << 31))).collect();
    for (x, got) in single.iter().zip(wide.f32(&[&single])) {
        assert_eq!(got.to_bits(), (f64::from(*x).to_bits() >> 20) as u32, "{x:e}");
    }
    let narrow = Function::unary(ScalarType::F64, narrowed).with(Subnormals::Flush);
    let double: Vec<f64> = (0..400).map(|i| f64::from(i) * 1.37e-40 * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    for (x, got) in double.iter().zip(narrow.f64(&[&double])) {
        assert_eq!(got.to_bits(), u64::from((*x as f32).to_bits()), "{x:e}");
    }
}

/// A bool as a float, the result type of a function.
fn flag<'b>(condition: Value<'b>, like: Value<'b>) -> Value<'b> {
    condition.select(like.like(1.0), like.like(0.0))
}

#[test]
fn comparisons_do_not_depend_on_flushing() {
    use dml_kernel::math::comparison::{equal, less, less_equal, maximum, minimum};
    let functions: [(&str, math::Binary); 5] = [
        ("equal", |a, b| flag(equal(a, b), a)),
        ("less", |a, b| flag(less(a, b), a)),
        ("less_equal", |a, b| flag(less_equal(a, b), a)),
        ("maximum", maximum),
        ("minimum", minimum),
    ];
    for scalar in [ScalarType::F32, ScalarType::F64] {
        let wrong = differences(scalar, functions.iter().map(|&(name, f)| (name, Function::binary(scalar, f))));
        assert!(wrong.is_empty(), "{scalar:?}: {wrong:#?}");
    }
    let special =
        [0.0, -0.0, 1e-45, -1e-45, 1e-39, 1.2e-38, -1.0, 1.0, f32::MAX, f32::INFINITY, -f32::INFINITY, f32::NAN];
    let pairs = special.iter().flat_map(|&a| special.map(|b| (a, b)));
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.unzip();
    let of = |f: math::Binary| Function::binary(ScalarType::F32, f).with(Subnormals::Flush).f32(&[&x, &y]);
    let expected: [fn(f32, f32) -> bool; 3] = [|a, b| a == b, |a, b| a < b, |a, b| a <= b];
    for ((name, function), expected) in functions.into_iter().zip(expected) {
        for (i, got) in of(function).into_iter().enumerate() {
            assert_eq!(got == 1.0, expected(x[i], y[i]), "{name} {:e} {:e}", x[i], y[i]);
        }
    }
    for (i, (larger, smaller)) in of(maximum).into_iter().zip(of(minimum)).enumerate() {
        let (a, b) = (x[i], y[i]);
        let want = |first: bool| if a.is_nan() || !b.is_nan() && first { a } else { b };
        assert_eq!(larger.to_bits(), want(a.partial_cmp(&b) != Some(Ordering::Less)).to_bits(), "{a:e} {b:e}");
        assert_eq!(smaller.to_bits(), want(b.partial_cmp(&a) != Some(Ordering::Less)).to_bits(), "{a:e} {b:e}");
    }
}
