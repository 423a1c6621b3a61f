//! The text of a kernel is lossless, and a text that is not a kernel is rejected with the position
//! of the mistake.

mod common;
#[path = "common/random_kernel.rs"]
mod random_kernel;

use common::{returns_from_text, validated};
use dml_kernel::{Kernel, ParseError, Target};
use dml_testing::Random;
use random_kernel::{matrix_kernel, random_kernel};

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

/// The error for a kernel with this body; line 2 declares two tensors and a number.
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

/// A text with a few of its tokens changed.
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

/// Every text is either rejected with a position in it, or a valid kernel, which round-trips and
/// passes the validator.
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
                    // The validator of Debian 12 does not know cooperative matrices.
                    kernel.emit().unwrap_or_else(|invalid| panic!("{invalid} of\n{text}"));
                } else if accepted % 16 == 0 {
                    validated(&kernel);
                }
            }
        }
    }
    assert!(accepted > 200, "{accepted} of the texts are kernels");
}
