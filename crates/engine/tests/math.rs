//! Every function of the math library on the device: the bits that the interpreter computes,
//! whatever the adapter does with subnormals.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Device, Launch};
use dml_kernel::interpret::Function;
use dml_kernel::{ScalarType, math};
use dml_testing::Random;

const SAMPLES: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

/// Any bits, subnormal ones, and numbers of moderate size with both signs; specials with specials
/// first.
fn samples(scalar: ScalarType, inputs: usize) -> Vec<Vec<u64>> {
    let specials = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, f64::INFINITY, f64::NAN, 1e-30, 1e30, 88.5, 16_777_216.0];
    let specials: Vec<u64> = specials.iter().flat_map(|&x| [x, -x]).map(|x| bits(scalar, x)).collect();
    let mut random = Random(7);
    let mut all = vec![Vec::new(); inputs];
    for &x in &specials {
        for &y in &specials {
            all[0].push(x);
            if let Some(second) = all.get_mut(1) {
                second.push(y);
            }
        }
    }
    for i in 0..SAMPLES {
        for x in &mut all {
            let spread = [1.0, 8.0, 128.0, 1e5][i / 2 % 4];
            let moderate = (random.next_u64() as i64 as f64) / (i64::MAX as f64) * spread;
            let any = if scalar == ScalarType::F64 { random.next_u64() } else { random.next_u64() >> 32 };
            let subnormal = if scalar == ScalarType::F64 { any & !(0x7ff << 52) } else { any & !(0xff << 23) };
            x.push(match i % 4 {
                0 => any,
                2 => subnormal,
                _ => bits(scalar, moderate),
            });
        }
    }
    all
}

fn bits(scalar: ScalarType, x: f64) -> u64 {
    if scalar == ScalarType::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) }
}

fn value(scalar: ScalarType, bits: u64) -> f64 {
    if scalar == ScalarType::F64 { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
}

fn to_bytes(scalar: ScalarType, words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()[..scalar.bytes() as usize].to_vec()).collect()
}

/// The function's results on the device, one word an input.
fn on_device(device: &Device, index: u32, scalar: ScalarType, function: &Function, inputs: &[Vec<u64>]) -> Vec<u64> {
    let n = inputs[0].len();
    let size = u64::from(scalar.bytes());
    let groups = (n as u32).div_ceil(Function::WORKGROUP);
    let padded = u64::from(groups * Function::WORKGROUP) * size;
    let key = ("test::math", [index, scalar as u32]);
    let kernel = device.kernel(&key, || function.kernel().clone()).unwrap();
    let mut addresses: Vec<u64> = Vec::new();
    for x in inputs {
        let address = device.allocate(padded).unwrap();
        device.upload(address, &to_bytes(scalar, x)).unwrap();
        addresses.push(address);
    }
    let result = device.allocate(padded).unwrap();
    let reads: Vec<AddressRange> = addresses.iter().map(|&a| AddressRange::new(a, padded)).collect();
    addresses.push(result);
    let params: Vec<u8> = addresses.iter().flat_map(|a| a.to_ne_bytes()).collect();
    let writes = [AddressRange::new(result, padded)];
    let launch = Launch {
        kernel,
        params: &params,
        table: &[],
        groups: [groups, 1, 1],
        reads: &reads,
        writes: &writes,
        work: 0,
        operator: "math",
    };
    device.launch(launch).unwrap();
    let mut bytes = vec![0; n * size as usize];
    device.download(result, &mut bytes).unwrap();
    addresses.iter().for_each(|&a| device.free(a));
    let word = |b: &[u8]| b.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
    bytes.chunks_exact(size as usize).map(word).collect()
}

fn interpreted(scalar: ScalarType, function: &Function, inputs: &[Vec<u64>]) -> Vec<u64> {
    if scalar == ScalarType::F64 {
        let x: Vec<Vec<f64>> = inputs.iter().map(|x| x.iter().map(|&w| f64::from_bits(w)).collect()).collect();
        let x: Vec<&[f64]> = x.iter().map(Vec::as_slice).collect();
        return function.f64(&x).iter().map(|r| r.to_bits()).collect();
    }
    let x: Vec<Vec<f32>> = inputs.iter().map(|x| x.iter().map(|&w| f32::from_bits(w as u32)).collect()).collect();
    let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
    function.f32(&x).iter().map(|r| u64::from(r.to_bits())).collect()
}

fn check(scalar: ScalarType) {
    let device = open();
    if scalar == ScalarType::F64 && !device.info().capabilities.f64 {
        return;
    }
    let unary = math::UNARY.iter().chain(math::special::UNARY);
    let unary = unary.map(|&(name, f)| (name, Function::unary(scalar, f)));
    let binary = math::BINARY.iter().chain(math::special::BINARY);
    let binary = binary.map(|&(name, f)| (name, Function::binary(scalar, f)));
    let mut wrong = Vec::new();
    for (index, (name, function)) in unary.chain(binary).enumerate() {
        let inputs = samples(scalar, function.inputs());
        let got = on_device(&device, index as u32, scalar, &function, &inputs);
        let want = interpreted(scalar, &function, &inputs);
        let differs = |&i: &usize| {
            let nan = value(scalar, got[i]).is_nan() && value(scalar, want[i]).is_nan();
            got[i] != want[i] && !nan
        };
        let bad: Vec<usize> = (0..got.len()).filter(differs).collect();
        if let Some(&i) = bad.first() {
            let x: Vec<f64> = inputs.iter().map(|x| value(scalar, x[i])).collect();
            let (g, w) = (value(scalar, got[i]), value(scalar, want[i]));
            wrong.push(format!("{name}{x:?}: {g:e}, interpreted {w:e}; {} of {} differ", bad.len(), got.len()));
        }
    }
    assert!(wrong.is_empty(), "{scalar:?}: {wrong:#?}");
}

#[test]
fn f32_functions_give_the_interpreters_bits() {
    check(ScalarType::F32);
}

#[test]
fn f64_functions_give_the_interpreters_bits() {
    check(ScalarType::F64);
}
