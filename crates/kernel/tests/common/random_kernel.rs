//! Random kernels, for tests of everything that takes a kernel.

use dml_kernel::math::functions;
use dml_kernel::{
    Atomic, Builder, ComponentMap, DType, Kernel, MatrixLayout, MatrixType, MatrixUse, ScalarType, Subgroup, Type,
    Value,
};
use dml_testing::Random;
use std::cell::RefCell;

const SCALARS: [ScalarType; 6] =
    [ScalarType::I32, ScalarType::U32, ScalarType::I64, ScalarType::U64, ScalarType::F32, ScalarType::F64];
const OPERATORS: [Atomic; 4] = [Atomic::Add, Atomic::Max, Atomic::Xor, Atomic::Exchange];

/// Appends random statements to a kernel.
struct Author<'b> {
    b: &'b Builder,
    random: Random,
    /// The values that may be used here.
    known: Vec<Value<'b>>,
    statements: u32,
}

type Shared<'a, 'b> = &'a RefCell<Author<'b>>;

impl<'b> Author<'b> {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    fn constant(&mut self, scalar: ScalarType) -> Value<'b> {
        let bits = match self.below(4) {
            0 => self.below(3) as u64,
            1 => [0x7fc0_0123, 0xff80_0000, 0x8000_0000, 1][self.below(4)],
            2 => [0x7ff8_0000_0000_0123, 0xfff0_0000_0000_0000, 1 << 63, u64::MAX][self.below(4)],
            _ => self.random.next_u64(),
        };
        match scalar {
            ScalarType::Bool => self.b.bool(bits & 1 == 1),
            ScalarType::F32 => self.b.float(scalar, f64::from(f32::from_bits(bits as u32))),
            ScalarType::F64 => self.b.float(scalar, f64::from_bits(bits)),
            integer => self.b.int(integer, bits),
        }
    }

    /// A value of a type.
    fn value(&mut self, scalar: ScalarType) -> Value<'b> {
        let known: Vec<Value> = self.known.iter().copied().filter(|value| value.scalar() == scalar).collect();
        if known.is_empty() || self.below(4) == 0 { self.constant(scalar) } else { self.one_of(&known) }
    }

    fn computed(&mut self) -> Value<'b> {
        let scalar = self.one_of(&SCALARS);
        let (x, y) = (self.value(scalar), self.value(scalar));
        match self.below(14) {
            0 => x + y,
            1 => x * y,
            2 => x - y,
            3 => x.lt(y).select(x, y),
            4 => x.max(y),
            5 => -x,
            6 if !scalar.is_float() => (x & y) | (x << 3),
            6 => x.floor() / y,
            7 => x.cast(self.one_of(&SCALARS)),
            8 if scalar.bytes() == 4 => x.bitcast(self.one_of(&SCALARS[..2])),
            9 if scalar == ScalarType::F32 => x.halves(y).half(1),
            9 if scalar.is_float() => x.fma(y, x),
            10 => self.called(scalar, x, y),
            12 => x.subgroup(self.one_of(&[Subgroup::Add, Subgroup::Min, Subgroup::First])),
            11 => x.shuffle_xor(self.below(32) as u32),
            _ => self.b.vector(&[x, y]).lane(1),
        }
    }

    /// The result of any function of the library that takes arguments of this type.
    fn called(&mut self, scalar: ScalarType, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let result = self.one_of(&[scalar, scalar, ScalarType::Bool, ScalarType::I32, ScalarType::F32]);
        let fits: Vec<_> = functions::all()
            .into_iter()
            .filter(|(_, f)| f.takes(&vec![Type::scalar(scalar); f.arguments()], Type::scalar(result)))
            .collect();
        let (_, function) = self.one_of(&fits);
        function.write(&[x, y, x][..function.arguments()], result)
    }

    fn index(&mut self) -> Value<'b> {
        let scalar = self.one_of(&[ScalarType::U32, ScalarType::I64, ScalarType::U64]);
        self.value(scalar)
    }
}

fn block(author: Shared<'_, '_>, depth: u32) {
    let known = author.borrow().known.len();
    let count = author.borrow_mut().below(8);
    for _ in 0..count {
        statement(author, depth);
    }
    author.borrow_mut().known.truncate(known);
}

fn statement(author: Shared<'_, '_>, depth: u32) {
    let mut a = author.borrow_mut();
    let (b, what) = (a.b, a.below(16));
    a.statements += 1;
    let scalar = a.one_of(&SCALARS);
    let dtype = a.one_of(&DType::ALL);
    match what {
        0 => {
            let pointer = b.input(["x", "y z", "var0", "0", "\"", "x"][a.below(6)], dtype);
            let index = a.index();
            let value = pointer.load(index);
            a.known.push(value);
        }
        1 => {
            let pointer = b.pointer(["out", "ж", "shared"][a.below(3)], dtype);
            let moved = pointer.offset(a.index());
            let index = a.index();
            moved.store(index, moved.load(index));
            moved.retyped(DType::U32).store(0, pointer.load(1u32).cast(ScalarType::U32));
        }
        2 => {
            let value = b.param(["n", "n", "stride 1"][a.below(3)], scalar);
            a.known.push(value);
        }
        3 => {
            let var = b.var(a.value(scalar));
            var.set(a.value(scalar));
            a.known.push(var.get());
        }
        4 => {
            let array = b.local_array(scalar, 2 + a.below(3) as u32);
            array.set(1, a.value(scalar));
            let index = a.value(ScalarType::U32);
            a.known.push(array.get(index));
        }
        5 => {
            let lanes = a.one_of(&[1, 2, 4]);
            let shared = b.shared(scalar, lanes, 1 + a.below(60) as u32);
            shared.store_lane(b.local_id(0), 0, a.value(scalar));
            b.barrier();
            let loaded = shared.load(0);
            a.known.push(if lanes == 1 { loaded } else { loaded.lane(lanes - 1) });
        }
        6 => {
            let pointer = b.pointer("counts", a.one_of(&[DType::I32, DType::U64]));
            let value = a.value(pointer.dtype().compute());
            let operator = a.one_of(&OPERATORS);
            let old = pointer.atomic(operator, a.index(), value);
            a.known.push(pointer.compare_exchange(0, old, value));
        }
        7 => {
            let shared = b.shared(ScalarType::U32, 1, 8);
            let operator = a.one_of(&OPERATORS);
            let old = shared.atomic(operator, b.subgroup_lane(), a.value(ScalarType::U32));
            b.subgroup_barrier();
            a.known.push(old);
        }
        8 => {
            let pointer = b.pointer("wide", dtype);
            let lanes = a.one_of(&[2, 4]);
            let chunk = a.index();
            pointer.store_chunk(chunk, &pointer.load_chunk(chunk, lanes));
        }
        9 | 10 if depth < 4 => {
            let (x, y) = (a.value(scalar), a.value(scalar));
            let condition = x.lt(y);
            drop(a);
            if what == 9 {
                b.if_else(condition, || block(author, depth + 1), || block(author, depth + 1));
            } else {
                b.if_(condition, || block(author, depth + 1));
            }
        }
        11 if depth < 4 => {
            let end = a.value(ScalarType::U32);
            drop(a);
            b.for_(3u32, end, 2u32, |i| {
                let known = author.borrow().known.len();
                author.borrow_mut().known.push(i);
                block(author, depth + 1);
                author.borrow_mut().known.truncate(known);
            });
        }
        12 => a.known.push([b.global_id(1), b.group_count(2), b.subgroup_index(), b.subgroup_size()][what % 4]),
        _ => {
            let value = a.computed();
            a.known.push(value);
        }
    }
}

/// A valid kernel of about 20 statements, which the seed determines.
pub fn random_kernel(seed: u64) -> Kernel {
    let b = Builder::new(["kernel", "a b", "copy::<f32>", ""][seed as usize % 4], [1 + (seed as u32 % 64), 1, 2]);
    {
        let author = RefCell::new(Author { b: &b, random: Random(seed), known: Vec::new(), statements: 0 });
        while author.borrow().statements < 20 {
            block(&author, 0);
        }
    }
    b.finish()
}

/// A kernel with every statement on matrices.
pub fn matrix_kernel() -> Kernel {
    let b = Builder::new("matrices", [32, 1, 1]);
    let ty = |dtype, part| MatrixType { dtype, rows: 16, columns: 16, part };
    let (x, out) = (b.input("x", DType::F16), b.pointer("out", DType::F32));
    let shared = b.shared(ScalarType::U32, 4, 64);
    let [left, right] = [MatrixUse::Left, MatrixUse::Right].map(|part| b.matrix(ty(DType::F16, part)));
    let [sum, other] = [0, 1].map(|_| b.matrix(ty(DType::F32, MatrixUse::Accumulator)));
    let half = b.matrix(ty(DType::F16, MatrixUse::Accumulator));
    left.load(x, 0, 16, MatrixLayout::RowMajor);
    right.load(shared, b.group_id(0), 2, MatrixLayout::ColumnMajor);
    sum.fill(0.0);
    sum.multiply_add(left, right);
    other.fill(1.0);
    sum.add(other);
    sum.scale(0.5);
    half.convert_from(sum);
    let map = ComponentMap::quads(16, 16, 32);
    sum.set_components(&map, &sum.components(&map));
    sum.store(out, 0, 16, MatrixLayout::RowMajor);
    b.finish()
}
