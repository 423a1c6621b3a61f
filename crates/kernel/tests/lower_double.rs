//! Kernels with 64-bit floats, rewritten for adapters without them, compute what they computed.

mod common;
#[path = "common/lowered.rs"]
mod lowered;

use dml_kernel::{Builder, DType, ScalarType};
use dml_testing::Random;
use lowered::{Operation, bytes, same_everywhere};

/// Random doubles of all magnitudes, near one another and not, and edge cases.
fn doubles(random: &mut Random, count: usize) -> Vec<u64> {
    const ONE: u64 = 1.0f64.to_bits();
    let edges = [
        0,
        1,
        2,
        (1 << 52) - 1,
        1 << 52,
        (1 << 52) + 1,
        ONE - 1,
        ONE,
        ONE + 1,
        0.5f64.to_bits(),
        0.5f64.to_bits() - 1,
        0.5f64.to_bits() + 1,
        1.5f64.to_bits(),
        2.5f64.to_bits(),
        2f64.powi(52).to_bits(),
        2f64.powi(53).to_bits() - 1,
        2f64.powi(63).to_bits(),
        f64::from(f32::MAX).to_bits(),
        f64::from(f32::MIN_POSITIVE).to_bits() - 1,
        2f64.powi(-150).to_bits(),
        f64::MAX.to_bits(),
        f64::INFINITY.to_bits(),
        f64::NAN.to_bits(),
    ];
    let mut last = 0;
    (0..count)
        .map(|_| {
            let bits = random.next_u64();
            last = match bits & 15 {
                0..=4 => edges[(bits >> 8) as usize % edges.len()] | (bits >> 7 & 1) << 63,
                5 => last ^ 1 << 63 ^ (bits >> 60), // Nearly the negative of the previous one.
                6..=8 => {
                    ((bits >> 4) % 80).wrapping_add(0x3ff - 40) << 52 | (random.next_u64() << 12 >> 12) | bits << 63
                }
                9 => (0x3ff + (bits >> 8) % 54) << 52 | ((random.next_u64() << 12 >> 12) & (!0 << ((bits >> 32) % 53))),
                10 => (random.next_u64() >> 12 >> ((bits >> 8) % 52)) | bits << 63, // Subnormal.
                11 => f64::from(f32::from_bits((bits >> 32) as u32)).to_bits(),
                _ => random.next_u64(),
            };
            last
        })
        .collect()
}

#[test]
fn arithmetic_of_doubles() {
    use ScalarType::*;
    let operations: [(&str, Operation); 17] = [
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", |x, y| x * y),
        ("neg_abs", |x, y| (-x).bitcast(U64).gt(y.bitcast(U64)).select(x.abs(), -x.abs())),
        ("lt", |x, y| x.lt(y).select(x.like(1.0), x.like(2.0))),
        ("le_ge", |x, y| x.le(y).select(x.like(1.0), x.ge(y).select(x.like(4.0), x.like(8.0)))),
        ("gt_eq_ne", |x, y| x.gt(y).select(x.like(1.0), x.eq(y).select(x.like(4.0), x.ne(y).select(y, x.like(3.0))))),
        ("min_max", |x, y| x.min(y).is_nan().select(x.max(y), x.min(y))),
        ("floor", |x, _| x.floor()),
        ("ceil", |x, _| x.ceil()),
        ("trunc", |x, _| x.trunc()),
        ("round", |x, _| x.round()),
        ("f32", |x, _| x.cast(F32).cast(F64)),
        ("i32", |x, _| x.abs().lt(2147483648.0).select(x, x.like(7.0)).cast(I32).cast(F64)),
        ("u32", |x, _| (x.ge(0.0) & x.lt(4294967296.0)).select(x, x.like(7.0)).cast(U32).cast(F64)),
        ("i64", |x, _| x.abs().lt(9223372036854775808.0).select(x, x.like(7.0)).cast(I64).cast(F64)),
        ("u64", |x, y| {
            let whole = (x.ge(0.0) & x.lt(18446744073709551616.0)).select(x, x.like(7.0)).cast(U64);
            (whole ^ y.bitcast(U64)).cast(F64)
        }),
    ];
    let mut random = Random(7);
    for (name, operation) in operations {
        let b = Builder::new(name, [64, 1, 1]);
        let (x, y, z) = (b.input("x", DType::F64), b.input("y", DType::F64), b.pointer("z", DType::F64));
        let i = b.global_id(0);
        let value = operation(x.load(i), y.load(i));
        // The bits of a NaN are not specified.
        z.store(i, value.is_nan().select(value.like(f64::NAN), value));
        let memory = [bytes(&doubles(&mut random, 4096)), bytes(&doubles(&mut random, 4096)), vec![0; 8 * 4096]];
        same_everywhere(&b.finish(), [64, 1, 1], &memory, &[]);
    }
}

/// Parameters, variables, arrays, shared memory and vectors of doubles, and loops over them.
#[test]
fn doubles_lie_everywhere() {
    let b = Builder::new("places", [32, 1, 1]);
    let (x, y, factor) = (b.input("x", DType::F64), b.pointer("y", DType::F64), b.param("factor", ScalarType::F64));
    let lane = b.local_id(0);
    let shared = b.shared(ScalarType::F64, 1, 32);
    let array = b.local_array(ScalarType::F64, 4);
    for (k, element) in x.load_chunk(lane, 4).into_iter().enumerate() {
        array.set(b.u32(k as u32), element * factor);
    }
    let sum = b.var(b.float(ScalarType::F64, 0.0));
    b.for_(0, b.u32(4), 1, |k| sum.set(sum.get() + array.get(k)));
    shared.store(lane, sum.get());
    b.barrier();
    let other = shared.load(lane ^ 1);
    let all = [sum.get(), other, sum.get() - other, other.abs().min(factor)];
    y.offset(lane.cast(ScalarType::U64)).store(0, all[2]);
    b.barrier();
    y.offset(b.int(ScalarType::U64, 32)).store_chunk(lane, &all);
    let values: Vec<u64> = (0..128).map(|i| (f64::from(i) * 0.3 - 11.0).to_bits()).collect();
    same_everywhere(&b.finish(), [1, 1, 1], &[bytes(&values), vec![0; 8 * 160]], &[1.25f64.to_bits()]);
}
