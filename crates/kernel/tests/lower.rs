//! Kernels that are rewritten for adapters without some features have the results of the originals
//! in the interpreter, and pass `spirv-val`.

mod common;
#[path = "common/lowered.rs"]
mod lowered;

use dml_kernel::ir::Inst;
use dml_kernel::{Atomic, Builder, DType, ScalarType, Subgroup, Target};
use dml_testing::Random;
use lowered::{NOTHING, Operation, bytes, same_everywhere};

/// Random integers of all magnitudes, and edge cases.
fn integers(random: &mut Random, count: usize) -> Vec<u64> {
    let edges = [0, 1, 2, 63, 64, u64::MAX, 1 << 31, 1 << 32, 1 << 63, (1 << 63) - 1, 0xffff_ffff, u64::MAX << 32];
    (0..count)
        .map(|_| {
            let bits = random.next_u64();
            match bits & 7 {
                0 => edges[(bits >> 8) as usize % edges.len()],
                1 => (bits >> 8).wrapping_neg() >> (bits % 64),
                _ => bits >> (random.next_u64() % 64),
            }
        })
        .collect()
}

#[test]
fn arithmetic_of_64_bits() {
    let operations: [(&str, Operation); 20] = [
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", |x, y| x * y),
        ("div", |x, y| y.eq(0).select(x, x / y.eq(0).select(y.like(1.0), y))),
        ("rem", |x, y| y.eq(0).select(x, x % y.eq(0).select(y.like(1.0), y))),
        ("and", |x, y| x & y),
        ("or", |x, y| x | y),
        ("xor", |x, y| x ^ y),
        ("shl", |x, y| x << (y & 63)),
        ("shr", |x, y| x >> (y & 63)),
        ("shl_known", |x, y| (x << 0) ^ (x << 7) ^ (y << 32) ^ (y << 45) ^ (x << 31)),
        ("shr_known", |x, y| (x >> 0) ^ (x >> 7) ^ (y >> 32) ^ (y >> 45) ^ (x >> 63)),
        ("min", |x, y| x.min(y)),
        ("max", |x, y| x.max(y)),
        ("neg", |x, y| !x - y),
        ("lt", |x, y| x.lt(y).select(x.like(1.0), y)),
        ("le_ge", |x, y| x.le(y).select(x.like(1.0), x.like(2.0)) + x.ge(y).select(x.like(4.0), x.like(8.0))),
        ("gt_eq_ne", |x, y| x.gt(y).select(x.like(1.0), x.eq(y).select(x, x.ne(y).select(y, x.like(3.0))))),
        ("narrow", |x, y| {
            let (x32, y32) = (x.cast(ScalarType::I32), y.cast(ScalarType::U32));
            x32.cast(x.scalar()) ^ (y32.cast(x.scalar()) << 8) ^ x32.ne(5).cast(x.scalar())
        }),
        ("bits", |x, y| (x.bitcast(ScalarType::U64) * y.bitcast(ScalarType::U64)).bitcast(x.scalar()).abs()),
    ];
    let mut random = Random(1);
    for (dtype, scalar) in [(DType::I64, ScalarType::I64), (DType::U64, ScalarType::U64)] {
        for (name, operation) in operations {
            if name == "bits" && scalar == ScalarType::U64 {
                continue; // Absolute values are for signed integers.
            }
            let b = Builder::new(format!("{name}_{dtype}"), [64, 1, 1]);
            let (x, y, out) = (b.input("x", dtype), b.input("y", dtype), b.pointer("out", dtype));
            let bias = b.param("bias", scalar);
            let i = b.global_id(0);
            let result = operation(x.load(i), y.load(i) + bias);
            // The result is passed through a variable, and through vectors in shared memory.
            let (var, shared) = (b.var(result), b.shared(scalar, 2, 64));
            shared.store(b.local_id(0), b.vector(&[var.get(), result]));
            shared.store_lane(b.local_id(0), 0, var.get());
            b.barrier();
            let both = shared.load(b.local_id(0));
            out.store(i.cast(ScalarType::I64), both.lane(0).eq(both.lane(1)).select(both.lane(1), result.like(7.0)));
            let values = [integers(&mut random, 192), integers(&mut random, 192), vec![0; 192]];
            same_everywhere(&b.finish(), [3, 1, 1], &values.map(|v| bytes(&v)), &[random.next_u64() % 3]);
        }
    }
}

#[test]
fn floats_and_64_bits() {
    let mut random = Random(2);
    for (dtype, scalar) in [(DType::I64, ScalarType::I64), (DType::U64, ScalarType::U64)] {
        let b = Builder::new(format!("to_{dtype}"), [64, 1, 1]);
        let (x, wide, narrow) = (b.input("x", dtype), b.pointer("wide", dtype), b.pointer("narrow", DType::F32));
        let i = b.global_id(0);
        let float = x.load(i).cast(ScalarType::F32);
        narrow.store(i, float);
        // A number in the range of the type.
        let magnitude = (float * 0.4375).abs();
        wide.store(i, magnitude.cast(scalar));
        if scalar == ScalarType::I64 {
            b.if_((i & 1).eq(0), || wide.store(i, (-magnitude).cast(scalar)));
        }
        let mut values = integers(&mut random, 1024);
        // Nearly half-way cases, where the low bits determine the rounding.
        for (i, value) in values.iter_mut().enumerate().take(300) {
            *value = ((0x80_0001u64 + i as u64) << 33 | 1 << 32) + (i as u64 % 3) - 1;
        }
        let memory = [bytes(&values), bytes(&vec![0; 1024]), vec![0; 4096]];
        let result = same_everywhere(&b.finish(), [16, 1, 1], &memory, &[]);
        for (bits, value) in result[2].chunks_exact(4).zip(&values) {
            let wanted = if scalar == ScalarType::I64 { *value as i64 as f32 } else { *value as f32 };
            assert_eq!(f32::from_le_bytes([bits[0], bits[1], bits[2], bits[3]]), wanted, "{value}");
        }
    }
}

#[test]
fn every_dtype_is_copied_and_converted() {
    let mut random = Random(3);
    for from in DType::ALL {
        for to in DType::ALL {
            if from.is_float() && !to.is_float() && to != DType::Bool {
                continue; // The result is undefined for a number out of range.
            }
            let b = Builder::new(format!("copy_{from}_{to}"), [64, 1, 1]);
            let (x, y) = (b.input("x", from), b.pointer("y", to));
            let (n, offset) = (b.param("n", ScalarType::U32), b.param("offset", ScalarType::I64));
            let i = b.global_id(0);
            // Neighbouring elements in a word are written by different invocations, and the
            // elements at the ends by none.
            let (x, y) = (x.offset(offset), y.offset(offset));
            b.if_(i.lt(n), || y.store(i, x.load(i)));
            let values: Vec<u8> = (0..1024).map(|_| random.next_u64() as u8 & 0x3b).collect();
            same_everywhere(&b.finish(), [2, 1, 1], &[values.clone(), vec![0xa5; 1024]], &[101, 3]);
        }
    }
}

#[test]
fn chunks_of_every_width() {
    let mut random = Random(4);
    for dtype in DType::ALL {
        for n in [1, 2, 4, 8, 16].into_iter().filter(|n| u64::from(*n) * dtype.bytes() <= 32) {
            let b = Builder::new(format!("chunk_{dtype}_{n}"), [32, 1, 1]);
            let (x, y) = (b.input("x", dtype), b.pointer("y", dtype));
            let i = b.global_id(0);
            y.store_chunk(i, &x.load_chunk(i, n));
            let far = i.cast(ScalarType::U64);
            y.store_chunk(far + 32, &x.load_chunk(far, n));
            let values: Vec<u8> = (0..1024).map(|_| random.next_u64() as u8 & 0x3b).collect();
            same_everywhere(&b.finish(), [1, 1, 1], &[values, vec![0; 2048]], &[]);
        }
    }
}

/// One invocation runs several: each of them has its own variables and returns alone, and barriers
/// synchronise all.
#[test]
fn workgroups_that_are_too_large() {
    for size in [[256, 1, 1], [8, 16, 2], [300, 1, 1]] {
        let b = Builder::new(format!("sum_{}", size[0]), size);
        let (x, y) = (b.input("x", DType::I32), b.pointer("y", DType::I32));
        let (n, early) = (b.param("n", ScalarType::U32), b.param("early", ScalarType::U32));
        let count: u32 = size.iter().product();
        b.if_(b.group_id(0).ge(early), || b.return_()); // A uniform return before barriers.
        let shared = b.shared(ScalarType::I32, 1, count);
        let lane = (b.local_id(2) * size[1] + b.local_id(1)) * size[0] + b.local_id(0);
        let sum = b.var(b.i32(0));
        b.for_(lane, n, count, |i| {
            b.if_else((i & 1).eq(0), || sum.set(sum.get() + x.load(i)), || sum.set(sum.get() - x.load(i)));
        });
        shared.store(lane, sum.get());
        let half = b.var(b.u32(count.next_power_of_two() / 2));
        b.while_(
            || half.get().gt(0),
            || {
                b.barrier();
                let other = lane + half.get();
                b.if_(lane.lt(half.get()) & other.lt(count), || {
                    shared.store(lane, shared.load(lane) + shared.load(other));
                });
                half.set(half.get() >> 1);
            },
        );
        b.barrier();
        let base = b.group_id(0) * (count + 1);
        b.if_((lane % 7).eq(3), || {
            b.if_((lane & 1).eq(0), || b.return_());
            y.store(base + 1 + lane, -1);
        });
        y.store(base + 1 + lane, shared.load(0) + lane.bitcast(ScalarType::I32));
        b.if_(lane.ne(0), || b.return_());
        y.store(base, shared.load(0));
        let x: Vec<u8> = (0..1000i32).flat_map(|i| (i * i % 37).to_le_bytes()).collect();
        same_everywhere(&b.finish(), [3, 1, 1], &[x, vec![0; 3 * 4 * (count as usize + 1)]], &[777, 2]);
    }
}

#[test]
fn long_parameter_blocks_and_atomics() {
    let b = Builder::new("many", [64, 1, 1]);
    let (y, hits) = (b.pointer("y", DType::I64), b.pointer("hits", DType::U32));
    let sum = b.var(b.int(ScalarType::I64, 0));
    for i in 0..20 {
        sum.set(sum.get() + b.param(&format!("n{i}"), ScalarType::I64));
        let _ = b.param(&format!("unused{i}"), ScalarType::U64);
    }
    let i = b.global_id(0);
    hits.atomic(Atomic::Add, (i & 3).cast(ScalarType::U64), 1);
    hits.compare_exchange(4, 0, 9);
    y.store(i, sum.get());
    let numbers: Vec<u64> = (0..40).map(|i| 0x1_0000_0001u64.wrapping_mul(i) ^ i << 50).collect();
    let result = same_everywhere(&b.finish(), [1, 1, 1], &[vec![0; 512], vec![0; 32]], &numbers);
    assert_eq!(result[1][0], 16);
}

#[test]
fn what_has_everything_gets_the_kernel_as_it_is() {
    let b = Builder::new("all", [256, 1, 1]);
    let (x, y) = (b.input("x", DType::F16), b.pointer("y", DType::I64));
    let i = b.global_id(0);
    y.store(i, x.load(i));
    let kernel = b.finish();
    let everything = Target { invocations: 256, ..Target::default() };
    assert!(matches!(kernel.lowered(&everything), std::borrow::Cow::Borrowed(_)));
    assert_eq!(kernel.emit_for(&everything).expect("valid").words, kernel.emit().expect("valid").words);
}

#[test]
fn what_cannot_be_rewritten_is_needed() {
    let emitted = |body: fn(&Builder)| {
        let b = Builder::new("test", [256, 1, 1]);
        body(&b);
        b.finish().emit_for(&NOTHING).expect("a valid kernel").needs
    };
    assert!(!emitted(|b| b.pointer("x", DType::F64).store(0, 1.0)).f64);
    let sum = emitted(|b| {
        let y = b.pointer("y", DType::F64);
        y.store(0, b.local_id(0).cast(ScalarType::F64).subgroup(Subgroup::Add));
    });
    assert!(sum.f64 && sum.subgroup_arithmetic);
    let atomic = emitted(|b| {
        b.pointer("x", DType::I64).atomic(Atomic::Add, 0, 1);
    });
    assert!(atomic.atomics_i64);
    let subgroup = emitted(|b| {
        let y = b.pointer("y", DType::U32);
        y.store(0, b.local_id(0).subgroup(Subgroup::Add));
    });
    assert!(subgroup.subgroup_arithmetic && subgroup.workgroup_invocations == 256 && !subgroup.i64);
}

/// A store of a byte never changes its neighbours, in any order of the invocations: it is a
/// compare-exchange of the word.
#[test]
fn narrow_stores_do_not_tear() {
    let b = Builder::new("store", [4, 1, 1]);
    let y = b.pointer("y", DType::U8);
    y.store(b.global_id(0), 1);
    let kernel = b.finish();
    let lowered = kernel.lowered(&NOTHING);
    let exchanges = |v: &&dml_kernel::ir::ValueInfo| matches!(v.inst, Inst::CompareExchange { .. });
    assert_eq!(lowered.values.iter().filter(exchanges).count(), 1);
}
