//! Conversions between f32 and f16, whichever way the adapter's kernels have them: every f16, and
//! every place where rounding decides.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Launch};
use dml_kernel::{Builder, DType, Value, convert};
use half::f16;

/// As many as the invocations of one dimension of workgroups.
const WIDTH: u32 = 64;

/// Two elements each: `out[i]` of `x[i]` from one dtype to another, singly or in chunks of two; of
/// f32 to f32 by way of f16.
fn converted(from: DType, to: DType, chunks: bool, x: &[i32], words_out: usize) -> Vec<i32> {
    let device = open();
    let key = ("test::halves", (from as u32, to as u32, chunks));
    fn by_way(x: Value<'_>, is: bool) -> Value<'_> {
        if is { convert(x, DType::F16) } else { x }
    }
    let is_f32 = from == to;
    let pairs = (x.len() * 4 / from.bytes() as usize / 2) as u32;
    let build = || {
        let b = Builder::new("halves", [WIDTH, 1, 1]);
        let (out, x) = (b.pointer("out", to), b.pointer("x", from));
        let i = b.global_id(0);
        if chunks {
            out.store_chunk(i, &x.load_chunk(i, 2).into_iter().map(|x| by_way(x, is_f32)).collect::<Vec<_>>());
        } else {
            (0..2).for_each(|j| out.store(i * 2 + j, by_way(x.load(i * 2 + j), is_f32)));
        }
        b.finish()
    };
    let kernel = device.kernel(&key, build).unwrap().clone();
    assert_eq!(pairs % WIDTH, 0);
    let (x_at, out) = (put(&device, x), put(&device, &vec![0; words_out]));
    let params: Vec<u8> = [out, x_at].iter().flat_map(|address| address.to_ne_bytes()).collect();
    let launch = Launch {
        kernel: &kernel,
        params: &params,
        table: &[],
        groups: [pairs / WIDTH, 1, 1],
        reads: &[AddressRange::new(x_at, x.len() as u64 * 4)],
        writes: &[AddressRange::new(out, words_out as u64 * 4)],
        work: 0,
        operator: "halves",
    };
    device.launch(launch).unwrap();
    read(&device, out, words_out)
}

/// Of a NaN nothing but that and its sign are promised.
fn same(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan() && x.is_sign_negative() == y.is_sign_negative()
}

#[test]
fn every_half_is_an_f32() {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let words: Vec<i32> = halves.chunks(2).map(|pair| i32::from(pair[0]) | i32::from(pair[1]) << 16).collect();
    for chunks in [false, true] {
        let found = converted(DType::F16, DType::F32, chunks, &words, halves.len());
        for (half, found) in halves.iter().map(|&bits| f16::from_bits(bits)).zip(found) {
            let (want, found) = (half.to_f32(), f32::from_bits(found as u32));
            assert!(same(want, found), "{:#06x}: {found:e}, not {want:e}", half.to_bits());
        }
    }
}

#[test]
fn floats_become_the_nearest_half() {
    let mut floats: Vec<f32> = Vec::new();
    for bits in 0..0x7c00 {
        let (low, high) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
        // Beyond the largest the next one would be 65536.
        let high = if high.is_infinite() { 65536.0 } else { high };
        let tie = (low + high) / 2.0;
        floats.extend([low, low.next_up(), tie.next_down(), tie, tie.next_up(), high.next_down()]);
    }
    floats.extend([
        f32::INFINITY,
        f32::MAX,
        65536.0,
        1e-45,
        f32::MIN_POSITIVE,
        f32::MIN_POSITIVE.next_down(),
        1e-9,
        3e38,
    ]);
    floats.extend([f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0x7fff_ffff), f32::from_bits(0x7f80_2000)]);
    let negative: Vec<f32> = floats.iter().map(|x| -x).collect();
    floats.extend(negative);
    floats.resize(floats.len().next_multiple_of(2 * WIDTH as usize), 0.0);
    let words: Vec<i32> = floats.iter().map(|x| x.to_bits() as i32).collect();
    for chunks in [false, true] {
        let halves = converted(DType::F32, DType::F16, chunks, &words, floats.len() / 2);
        let halves = halves
            .iter()
            .flat_map(|&word| [word as u16, (word >> 16) as u16])
            .map(|bits| f16::from_bits(bits).to_f32());
        // One kernel with both conversions must not leave them out.
        let there_and_back = converted(DType::F32, DType::F32, chunks, &words, floats.len());
        let there_and_back = there_and_back.iter().map(|&bits| f32::from_bits(bits as u32));
        for (found, of) in [(halves.collect::<Vec<_>>(), "as f16"), (there_and_back.collect(), "and back")] {
            for (x, found) in floats.iter().zip(found) {
                let want = f16::from_f32(*x).to_f32();
                assert!(same(want, found), "{x:e} ({:#010x}) {of}: {found:e}, not {want:e}", x.to_bits());
            }
        }
    }
}
