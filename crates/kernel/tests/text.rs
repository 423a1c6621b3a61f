//! The text of a kernel loses nothing, and a text that is no kernel is refused where it is wrong.

mod common;

use common::{returns_from_text, validated};
use dml_kernel::math::functions;
use dml_kernel::{
    Atomic, Builder, DType, Kernel, MatrixLayout, MatrixType, MatrixUse, ParseError, ScalarType, Subgroup, Target,
    Type, Value,
};
use dml_testing::Random;
use std::cell::RefCell;

const SCALARS: [ScalarType; 6] =
    [ScalarType::I32, ScalarType::U32, ScalarType::I64, ScalarType::U64, ScalarType::F32, ScalarType::F64];
const OPERATORS: [dml_kernel::Atomic; 4] = [Atomic::Add, Atomic::Max, Atomic::Xor, Atomic::Exchange];

/// Writes what a seed says.
struct Author<'b> {
    b: &'b Builder,
    random: Random,
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

    /// A function of the library, of any that takes such arguments.
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

fn random_kernel(seed: u64) -> Kernel {
    let b = Builder::new(["kernel", "a b", "copy::<f32>", ""][seed as usize % 4], [1 + (seed as u32 % 64), 1, 2]);
    {
        let author = RefCell::new(Author { b: &b, random: Random(seed), known: Vec::new(), statements: 0 });
        while author.borrow().statements < 20 {
            block(&author, 0);
        }
    }
    b.finish()
}

/// Every statement on matrices.
fn matrix_kernel() -> Kernel {
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
    let map = dml_kernel::ComponentMap::quads(16, 16, 32);
    sum.set_components(&map, &sum.components(&map));
    sum.store(out, 0, 16, MatrixLayout::RowMajor);
    b.finish()
}

#[test]
fn random_kernels_return() {
    for seed in 0..400 {
        let kernel = random_kernel(seed);
        kernel.verify().unwrap_or_else(|invalid| panic!("{seed}: {invalid}\n{kernel}"));
        returns_from_text(&kernel);
        let target = Target { int64: false, float64: false, storage8: false, storage16: false, ..Target::default() };
        returns_from_text(&kernel.lowered(&target));
    }
}

#[test]
fn matrices_return() {
    returns_from_text(&matrix_kernel());
}

#[test]
fn bits_of_constants_survive() {
    let f32s: [u32; 9] =
        [0x7fc0_0000, 0x7fc0_0001, 0x7f80_0001, 0xffff_ffff, 0x8000_0000, 1, 0x7f7f_ffff, 0xff80_0000, 0x3dcc_cccd];
    let f64s: [u64; 7] = [
        1 << 63,
        0x7ff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff0_0000_0000_0000,
        1,
        u64::MAX,
        0x3fb9_9999_9999_999a,
    ];
    let mut text = "kernel bits [1, 1, 1] {\n".to_owned();
    f32s.iter().for_each(|bits| text.push_str(&format!("const {bits:#x}:f32\n")));
    f64s.iter().for_each(|bits| text.push_str(&format!("const {bits:#x}:f64\n")));
    let kernel: Kernel = (text + "}").parse().expect("a kernel");
    let expected: Vec<u64> = f32s.into_iter().map(u64::from).chain(f64s).collect();
    let bits = |kernel: &Kernel| -> Vec<u64> {
        kernel
            .values
            .iter()
            .map(|value| match value.inst {
                dml_kernel::ir::Inst::ConstFloat(bits) => bits,
                ref other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(bits(&kernel), expected);
    assert_eq!(kernel.to_string().parse(), Ok(kernel));
}

/// What a text is refused for, in a kernel with two tensors and a number from line 2 on.
fn refused(body: &str) -> String {
    let text = format!("kernel k [64, 1, 1] {{\ninput @x: f32 output @y: f32 param %n: u32\n{body}\n}}");
    text.parse::<Kernel>().expect_err(body).to_string()
}

#[test]
fn errors_say_where_and_what() {
    for (body, error) in [
        ("%a: f32 = add %b, 1.0", "3:15: %b is not defined here"),
        ("%a: f32 = add 1.0, %n", "3:11: add of f32, u32 gives no f32"),
        ("%a: f32 = plus %n, %n", "3:11: an instruction or a function is wanted, and plus is found"),
        ("%a: f32 = exp %n", "3:11: exp of u32 gives no f32"),
        ("%a: f32 = pow 1.0", "4:1: , is wanted, and } is found"),
        ("%a: u32 = max 1.0:f32, 1", "3:11: max of f32, u32 gives no u32"),
        ("%a: f32 = select true, 1.0, %n", "3:11: select of f32, u32 gives no f32"),
        ("%a: f33 = add %n, %n", "3:5: a type is wanted, and f33 is found"),
        ("%n: u32 = add 1, 2", "3:1: %n is defined before"),
        ("%a: u32 = add 1, 4294967296", "3:18: 4294967296 is no number of type u32"),
        ("%a: i32 = add 1, 99999999999999999999999", "3:18: 99999999999999999999999 is no number of type i32"),
        ("%a: f32 = add 1, 1e999", "3:18: 1e999 is no number of type f32"),
        ("%a: bool = eq 1, 2", "3:15: the type of 1 is not known here: 1:u32 says it"),
        ("store @x[0], 1.0", "3:1: x is an input, which nothing is written to"),
        ("store @y[0], %n", "3:1: memory of f32 takes no u32"),
        ("store @z[0], %n", "3:7: @z is not defined here"),
        ("store @y[1.5], 1.0", "3:10: 1.5 is no number of type u32"),
        ("store @y[0] 1.0", "3:13: , is wanted, and 1.0 is found"),
        ("if %n { }", "3:4: if takes a bool, and this is of type u32"),
        ("if true {\n %a: u32 = add %n, 1\n}\n%b: u32 = add %a, 1", "6:15: %a is not defined here"),
        ("loop { while false } while", "3:22: } is wanted, and while is found"),
        ("loop { }", "3:8: while is wanted, and } is found"),
        ("loop { return while true }", "4:2: a loop returns before its while"),
        ("var @v: f32 %a: f32 = load @v[0]", "3:23: a variable that is no array has no elements"),
        ("var @v: f32[4] %a: f32 = load @v", "3:26: an array is used as a whole"),
        ("shared @s: f32[0]", "4:2: an array has no elements"),
        ("shared @s: f64[4294967295]", "4:2: a workgroup has 34359738360 bytes of memory"),
        ("shared @s: bool[4]", "3:12: a workgroup's array has numbers"),
        ("matrix @m: left f32[16, 16]", "3:8: there is no matrix of type left f32[16, 16]"),
        ("%a: u32 = atomic_add @y[0], 1", "3:11: an atomic operation on u32 in memory of f32"),
        ("%a: u32x3 = vector %n, %n", "3:5: a type is wanted, and u32x3 is found"),
        ("%é: u32 = add %n, %n", "3:1: a name is missing after %"),
        ("// é\n /* %n", "4:2: '/' begins nothing"),
        ("param %m \"a", "3:10: a quote is not closed"),
        ("param %m \"\\q\": u32", "3:10: an escape that is not known"),
        ("} {", "3:3: the end of the text is wanted, and { is found"),
        ("@p: f32 = offset @y, 1.0:f32", "3:1: a pointer is moved by a u64 or an i64, not by f32"),
        ("%a: u32 = lane %n, 300", "3:20: this is more than 255"),
    ] {
        assert_eq!(refused(body), error, "{body}");
    }
    assert_eq!(
        format!("{}", "kernel".parse::<Kernel>().expect_err("no name")),
        "1:7: a name is wanted, and the text ends"
    );
    let huge = "kernel k [65536, 65536, 2] {}".parse::<Kernel>();
    assert_eq!(huge.map_err(|e| e.what), Err("its workgroups have [65536, 65536, 2] invocations".to_owned()));
    let ParseError { line, column, .. } = "kernel k [1, 1, 1] {\n\n  x".parse::<Kernel>().expect_err("no statement");
    assert_eq!((line, column), (3, 3));
}

#[test]
fn blocks_are_as_deep_as_the_stack_allows() {
    let nested = |depth: usize| format!("kernel k [1, 1, 1] {{{}{}}}", "if true {".repeat(depth), "}".repeat(depth));
    assert!(nested(99).parse::<Kernel>().is_ok_and(|kernel| kernel.emit().is_ok()));
    let refused = nested(100_000).parse::<Kernel>().expect_err("too deep");
    assert_eq!(refused.what, "more than 100 blocks in each other");
}

/// A text with a few of its pieces changed.
fn mutated(text: &str, random: &mut Random) -> String {
    const PIECES: [&str; 40] = [
        "%0",
        "%1",
        "@0",
        "@x",
        "f32",
        "u32x4",
        "bool",
        "u64",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "=",
        ".",
        "0",
        "1",
        "-1",
        "4294967295",
        "99999999999999999999",
        "0x",
        "1e400",
        "nan",
        "true",
        "load",
        "store",
        "if",
        "loop",
        "while",
        "return",
        "barrier",
        "var",
        "param",
        "offset",
        "select",
        "cast",
        "\"",
        "//",
        "\u{fffd}",
    ];
    let mut pieces: Vec<String> = Vec::new();
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if c.is_alphanumeric() && last.ends_with(|c: char| c.is_alphanumeric() || "%@_".contains(c)) => {
                last.push(c)
            }
            _ => pieces.push(c.to_string()),
        }
    }
    for _ in 0..1 + random.below(3) {
        let at = random.below(pieces.len() as u64) as usize;
        match random.below(5) {
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, PIECES[random.below(40) as usize].to_owned()),
            2 => pieces[at] = PIECES[random.below(40) as usize].to_owned(),
            3 => {
                let other = random.below(pieces.len() as u64) as usize;
                pieces.swap(at, other);
            }
            _ => {
                let other = pieces[random.below(pieces.len() as u64) as usize].clone();
                pieces[at] = other;
            }
        }
    }
    pieces.concat()
}

/// Whatever the text is, it is refused with a place in it, or it is a kernel whose text is the
/// kernel's and that drivers accept.
#[test]
fn no_text_is_too_much() {
    let texts: Vec<String> =
        (0..60).map(|seed| random_kernel(seed).to_string()).chain([matrix_kernel().to_string()]).collect();
    let (mut random, mut accepted) = (Random(5), 0);
    for turn in 0..6000 {
        let text = mutated(&texts[turn % texts.len()], &mut random);
        match text.parse::<Kernel>() {
            Err(ParseError { line, column, .. }) => {
                let width = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
                assert!(line <= text.lines().count() + 1 && column <= width + 1, "{line}:{column} of\n{text}");
            }
            Ok(kernel) => {
                returns_from_text(&kernel);
                accepted += 1;
                if !kernel.matrices.is_empty() {
                    // The validator of Debian 12 knows no matrices.
                    kernel.emit().unwrap_or_else(|invalid| panic!("{invalid} of\n{text}"));
                } else if accepted % 16 == 0 {
                    validated(&kernel);
                }
            }
        }
    }
    assert!(accepted > 200, "{accepted} of the texts are kernels");
}
