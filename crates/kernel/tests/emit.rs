//! Every construct of the language passes `spirv-val`.

mod common;

use common::{validated, validated_for};
use dml_kernel::{Atomic, Builder, DType, FloatModes, Module, ScalarType, Subgroup, Target};

#[test]
fn copies_and_converts_every_dtype_to_every_other() {
    for from in DType::ALL {
        for to in DType::ALL {
            let b = Builder::new(format!("copy_{from}_{to}"), [64, 1, 1]);
            let x = b.pointer("x", from);
            let y = b.pointer("y", to);
            let n = b.param("n", ScalarType::U32);
            let i = b.global_id(0);
            b.if_(i.lt(n), || y.store(i, x.load(i)));
            validated(&b.finish());
        }
    }
}

#[test]
fn chunks_of_every_width() {
    for dtype in DType::ALL {
        for n in [1, 2, 4, 8, 16].into_iter().filter(|n| u64::from(*n) * dtype.bytes() <= 32) {
            let b = Builder::new(format!("chunk_{dtype}_{n}"), [64, 1, 1]);
            let x = b.pointer("x", dtype);
            let y = b.pointer("y", dtype);
            let i = b.global_id(0);
            y.store_chunk(i, &x.load_chunk(i, n));
            validated(&b.finish());
        }
    }
}

#[test]
fn control_flow_shared_memory_and_barriers() {
    let b = Builder::new("sum", [64, 1, 1]);
    let x = b.pointer("x", DType::F32);
    let y = b.pointer("y", DType::F32);
    let n = b.param("n", ScalarType::U32);
    let shared = b.shared(ScalarType::F32, 1, 64);
    let lane = b.local_id(0);
    let acc = b.var(b.float(ScalarType::F32, 0.0));
    b.for_(lane, n, 64, |i| {
        b.if_else(x.load(i).is_nan(), || acc.set(1.0), || acc.set(acc.get() + x.load(i)));
    });
    shared.store(lane, acc.get());
    for half in [32, 16, 8, 4, 2, 1] {
        b.barrier();
        b.if_(lane.lt(half), || shared.store(lane, shared.load(lane) + shared.load(lane + half)));
    }
    b.if_(lane.ne(0), || b.return_());
    y.offset(b.group_id(0)).store(0, shared.load(0));
    let kernel = b.finish();
    let module = validated(&kernel);
    assert_eq!(module.push_bytes, 20);
    assert_eq!(module.needs.shared_bytes, 256);
}

#[test]
fn long_parameter_blocks_move_to_memory() {
    let b = Builder::new("many", [64, 1, 1]);
    let y = b.pointer("y", DType::I64);
    let sum = b.var(b.int(ScalarType::I64, 0));
    for i in 0..20 {
        sum.set(sum.get() + b.param(&format!("n{i}"), ScalarType::I64));
    }
    y.store(b.global_id(0), sum.get());
    let module = validated(&b.finish());
    assert!(module.indirect);
    assert_eq!((module.push_bytes, module.param_bytes), (8, 168));
}

const SPIRV_HEADER: usize = 5;
const OP_LOAD: u32 = 61;
const OP_SELECTION_MERGE: u32 = 247;

#[test]
fn parameters_of_one_branch_are_loaded_there() {
    let b = Builder::new("branches", [64, 1, 1]);
    let shared = b.param("shared", ScalarType::I64);
    for i in 0..8 {
        let y = b.pointer(&format!("y{i}"), DType::F16);
        let n = b.param(&format!("n{i}"), ScalarType::I64);
        b.if_(b.group_id(0).eq(i), || y.store(b.global_id(0), (n + shared).cast(ScalarType::F32)));
    }
    let kernel = b.finish();
    // Up to the first branch.
    let loads_in_entry = |module: &Module| {
        let (mut at, mut loads) = (SPIRV_HEADER, 0);
        while module.words[at] & 0xffff != OP_SELECTION_MERGE {
            loads += u32::from(module.words[at] & 0xffff == OP_LOAD);
            at += module.words[at] as usize >> 16;
        }
        loads
    };
    let early = validated_for(&kernel, &Target::default());
    let late = validated_for(&kernel, &Target { late_params: true, ..Target::default() });
    assert!(early.indirect && late.indirect);
    assert_eq!(loads_in_entry(&early) - loads_in_entry(&late), 16);
}

#[test]
fn integers_atomics_subgroups_and_vectors() {
    let b = Builder::new("mixed", [32, 1, 1]);
    let x = b.pointer("x", DType::U32);
    let z = b.pointer("z", DType::I64);
    let i = b.global_id(0);
    let v = x.load(i);
    let w = v.mul_high(3) + v.count_ones() + v.highest_bit() + v.max(4u32) + v.min(7u32);
    let old = x.atomic(Atomic::Add, 0, w) ^ x.compare_exchange(1, 0, 1) ^ x.atomic(Atomic::Max, 2, w);
    let s = old.cast(ScalarType::F32).subgroup(Subgroup::Add).shuffle_xor(1);
    let t = old.subgroup(Subgroup::First) + b.subgroup_lane() + b.subgroup_size();
    z.atomic(Atomic::Min, i, s.cast(ScalarType::I64));
    let shared = b.shared(ScalarType::F32, 4, 16);
    shared.store(0, b.vector(&[s, s.floor(), s.ceil(), s.round().abs().trunc()]));
    shared.store_lane(1, t & 3, s);
    let counts = b.shared(ScalarType::U32, 1, 8);
    counts.store(t & 7, counts.atomic(Atomic::Add, t & 3, w));
    b.barrier();
    let four = shared.load(0);
    let array = b.local_array(ScalarType::F32, 4);
    array.set(t & 3, four.lane(2).fma(s, -s));
    x.store(i, (((array.get(1).cast(ScalarType::U32) / 3 % 2) << 1) >> 1) | !t);
    validated(&b.finish());
}

/// With the adapter's f16 conversions, and with integer operations.
#[test]
fn halves() {
    for halves in [true, false] {
        let b = Builder::new("halves", [64, 1, 1]);
        let (out, x, i) = (b.pointer("out", DType::F16), b.input("x", DType::F16), b.global_id(0));
        let pair: Vec<_> =
            x.load_chunk(i, 2).into_iter().map(|x| dml_kernel::convert(x * 3.0, DType::F16) + 1.0).collect();
        out.store_chunk(i, &pair);
        out.store(i + 1000, x.load(i + 1000));
        let floats = FloatModes { halves, ..FloatModes::default() };
        let module = validated_for(&b.finish(), &Target { floats, ..Target::default() });
        assert_eq!(module.needs.f16, halves);
    }
}
