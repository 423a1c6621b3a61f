//! The interpreter against plain Rust.

use dml_kernel::interpret::{Argument, Function, run};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

fn bytes<T: Copy, const N: usize>(x: &[T], f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    x.iter().flat_map(|&v| f(v)).collect()
}

#[test]
fn expressions() {
    let x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 100.0).collect();
    let f = Function::unary(ScalarType::F32, |x| (x * x - 3.0 * x).abs().floor().max(x));
    let want: Vec<f32> = x.iter().map(|x| (x * x - 3.0 * x).abs().floor().max(*x)).collect();
    assert_eq!(f.f32(&[&x]), want);
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let y: Vec<f64> = x.iter().rev().copied().collect();
    let f = Function::binary(ScalarType::F64, |x, y| {
        let k = x.round().cast(ScalarType::I32);
        ((k % 7) << 2).cast(ScalarType::F64) + (k.gt(y.trunc().cast(ScalarType::I32))).select(x, y)
    });
    let want: Vec<f64> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| {
            let k = x.round_ties_even() as i32;
            f64::from((k % 7) << 2) + if k > y.trunc() as i32 { *x } else { *y }
        })
        .collect();
    assert_eq!(f.f64(&[&x, &y]), want);
}

/// False is less than true, as in Rust.
#[test]
fn bools_are_ordered() {
    let x = [0, 0, 1, 1];
    let y = [0, 1, 0, 1];
    type Compare = for<'b> fn(Value<'b>, Value<'b>) -> Value<'b>;
    type Order = fn(&bool, &bool) -> bool;
    let orders: [(Compare, Order); 4] = [
        (|p, q| p.lt(q), bool::lt),
        (|p, q| p.le(q), bool::le),
        (|p, q| p.gt(q), bool::gt),
        (|p, q| p.ge(q), bool::ge),
    ];
    for (compare, want) in orders {
        let b = Builder::new("order", [4, 1, 1]);
        let (out, p, q) = (b.pointer("out", DType::Bool), b.input("p", DType::Bool), b.input("q", DType::Bool));
        let i = b.local_id(0);
        out.store(i, compare(p.load(i), q.load(i)));
        let kernel = b.finish();
        kernel.verify().expect("a valid kernel");
        let (mut out, mut p, mut q) = (vec![0; 4], x.to_vec(), y.to_vec());
        run(&kernel, [1, 1, 1], 4, &mut [&mut out, &mut p, &mut q].map(|m| Argument::Memory(m)));
        let want: Vec<u8> = x.iter().zip(&y).map(|(x, y)| u8::from(want(&(*x != 0), &(*y != 0)))).collect();
        assert_eq!(out, want);
    }
}

#[test]
fn loops_branches_returns_shared_memory_and_barriers() {
    let b = Builder::new("sums", [64, 1, 1]);
    let x = b.pointer("x", DType::I16);
    let y = b.pointer("y", DType::I64);
    let n = b.param("n", ScalarType::U32);
    let shared = b.shared(ScalarType::I64, 1, 64);
    let lane = b.local_id(0);
    let row = x.offset(b.group_id(0) * n);
    let sum = b.var(b.int(ScalarType::I64, 0));
    b.for_(lane, n, 64, |i| {
        let v = row.load(i).cast(ScalarType::I64);
        b.if_else(v.lt(0), || sum.set(sum.get() - v * 2), || sum.set(sum.get() + v));
    });
    shared.store(lane, sum.get());
    for half in [32, 16, 8, 4, 2, 1] {
        b.barrier();
        b.if_(lane.lt(half), || shared.store(lane, shared.load(lane) + shared.load(lane + half)));
    }
    b.if_(lane.ne(0), || b.return_());
    y.offset(b.group_id(0)).store(0, shared.load(0));
    let kernel = b.finish();
    let x: Vec<i16> = (0..3 * 150).map(|i| (i * 7919 % 1001 - 500) as i16).collect();
    let want: Vec<i64> =
        x.chunks(150).map(|r| r.iter().map(|&v| if v < 0 { -2 } else { 1 } * i64::from(v)).sum()).collect();
    let mut input = bytes(&x, i16::to_le_bytes);
    let mut output = vec![0; 24];
    let mut arguments = [Argument::Memory(&mut input), Argument::Memory(&mut output), Argument::Number(150)];
    run(&kernel, [3, 1, 1], 8, &mut arguments);
    assert_eq!(output, bytes(&want, i64::to_le_bytes));
}

#[test]
fn chunks_arrays_and_atomics() {
    let b = Builder::new("chunks", [16, 1, 1]);
    let x = b.pointer("x", DType::F16);
    let y = b.pointer("y", DType::BF16);
    let z = b.pointer("z", DType::U32);
    let i = b.global_id(0);
    let v = x.load_chunk(i, 4);
    let array = b.local_array(ScalarType::F32, 4);
    v.iter().enumerate().for_each(|(k, &v)| array.set(k as u32, v));
    y.store_chunk(i, &[array.get(3), array.get(i & 1), v[2], v[0] * 2.0]);
    z.atomic(Atomic::Max, i & 1, i * 3);
    let kernel = b.finish();
    // 1, -2, 0.5 and the smallest subnormal number of f16; the high halves of f32 are bf16.
    let mut input = bytes(&[0x3c00u16, 0xc000, 0x3800, 0x0001].repeat(16), u16::to_le_bytes);
    let (mut output, mut most) = (vec![0; 128], vec![0; 8]);
    let memory = [&mut input, &mut output, &mut most];
    run(&kernel, [1, 1, 1], 8, &mut memory.map(|m| Argument::Memory(m)));
    assert_eq!(output[..8], bytes(&[0x3380u16, 0x3f80, 0x3f00, 0x4000], u16::to_le_bytes));
    assert_eq!(output[8..16], bytes(&[0x3380u16, 0xc000, 0x3f00, 0x4000], u16::to_le_bytes));
    assert_eq!(most, bytes(&[42u32, 45], u32::to_le_bytes));
}

#[test]
fn a_tile_is_transposed_through_lanes_of_shared_vectors() {
    let b = Builder::new("transpose", [4, 1, 1]);
    let x = b.pointer("x", DType::F32);
    let y = b.pointer("y", DType::F32);
    let shared = b.shared(ScalarType::F32, 4, 4);
    let row = b.local_id(0);
    for (column, value) in x.load_chunk(row, 4).into_iter().enumerate() {
        shared.store_lane(column as u32, row, value);
    }
    b.barrier();
    let column = shared.load(row);
    y.store_chunk(row, &[0, 1, 2, 3].map(|i| column.lane(i)));
    let mut from = bytes(&(0..16).map(|i| i as f32).collect::<Vec<_>>(), f32::to_le_bytes);
    let mut to = vec![0; 64];
    run(&b.finish(), [1; 3], 4, &mut [Argument::Memory(&mut from), Argument::Memory(&mut to)]);
    let want: Vec<f32> = (0..16).map(|i| (i % 4 * 4 + i / 4) as f32).collect();
    assert_eq!(to, bytes(&want, f32::to_le_bytes));
}

/// Every invocation adds to the shared count of its digit.
#[test]
fn counts_in_shared_memory() {
    let b = Builder::new("histogram", [64, 1, 1]);
    let (out, x) = (b.pointer("out", DType::U32), b.input("x", DType::U32));
    let (counts, me) = (b.shared(ScalarType::U32, 1, 4), b.local_id(0));
    b.if_(me.lt(4), || counts.store(me, b.u32(0)));
    b.barrier();
    counts.atomic(Atomic::Add, x.load(me) & 3, b.u32(1));
    b.barrier();
    b.if_(me.lt(4), || out.store(me, counts.load(me)));
    let kernel = b.finish();
    kernel.verify().expect("a valid kernel");
    let x: Vec<u32> = (0..64).map(|i| i * i / 3).collect();
    let (mut out, mut input) = (vec![0; 16], bytes(&x, u32::to_le_bytes));
    run(&kernel, [1, 1, 1], 4, &mut [&mut out, &mut input].map(|m| Argument::Memory(m)));
    let want: Vec<u32> = (0..4).map(|d| x.iter().filter(|x| *x & 3 == d).count() as u32).collect();
    assert_eq!(out, bytes(&want, u32::to_le_bytes));
}
