//! Kernels as HLSL: checks of the source. `make test-hlsl` compiles and runs it.

use dml_kernel::hlsl::Unsupported;
use dml_kernel::matrix::product_types;
use dml_kernel::{Atomic, Builder, DType, Kernel, ScalarType};

fn kernel(parameters: usize) -> Kernel {
    let b = Builder::new("sums", [64, 1, 1]);
    {
        let (out, x) = (b.pointer("out", DType::F32), b.input("x", DType::F16));
        let n = b.param("n", ScalarType::U32);
        let more: Vec<_> = (0..parameters).map(|i| b.param(&format!("p{i}"), ScalarType::F32)).collect();
        let sum = b.var(b.float(ScalarType::F32, 0.0));
        b.for_(b.global_id(0), n, b.group_count(0), |i| {
            let scaled = more.iter().fold(x.load(i), |value, &by| value * by);
            b.if_(scaled.gt(0.5), || sum.set(sum.get() + scaled));
        });
        out.store(b.global_id(0), sum.get());
    }
    b.finish()
}

#[test]
fn floats_are_precise_and_constants_bits() {
    let shader = kernel(1).hlsl().expect("a valid kernel");
    assert!(shader.source.contains("[numthreads(64, 1, 1)]"));
    assert!(shader.source.contains("asfloat(0x3f000000u)"), "0.5 by its bits");
    let imprecise = shader.source.lines().find(|line| line.trim_start().starts_with("float v"));
    assert_eq!(imprecise, None, "may be computed otherwise");
    assert!(shader.source.lines().any(|line| line.contains("precise float v") && line.contains(" * ")));
    let count = |what: char| shader.source.matches(what).count();
    assert_eq!((count('{'), count('(')), (count('}'), count(')')));
}

#[test]
fn numbers_that_are_not_equal_include_nan() {
    let b = Builder::new("is_nan", [1, 1, 1]);
    let (x, n) = (b.input("x", DType::F32).load(0), b.param("n", ScalarType::U32));
    let (one, zero) = (b.float(ScalarType::F32, 1.0), b.float(ScalarType::F32, 0.0));
    b.pointer("out", DType::F32).store(0, x.ne(x).select(one, zero) + n.ne(3).select(one, zero));
    let text = b.finish().hlsl().expect("a valid kernel").source;
    let line_of = |what: &str| text.lines().filter(|line| line.contains("bool v") && line.contains(what)).count();
    assert_eq!((line_of("!("), line_of(" != ")), (1, 1), "{text}");
}

#[test]
fn parameters_are_root_constants_as_far_as_push_constants_go() {
    let (few, many) = (kernel(1).hlsl().expect("valid"), kernel(40).hlsl().expect("valid"));
    assert!(!few.indirect && many.indirect && few.groups);
    assert_eq!((few.param_bytes, many.param_bytes), (24, 180));
    assert!(few.source.contains("uint w5; uint groups_x;") && !few.source.contains(" w6;"));
    assert!(many.source.contains("uint w1; uint groups_x;") && !many.source.contains(" w2;"));
    assert!(many.source.contains("IN(parameters).Load(parameters.x + 176)"));
}

#[test]
fn bytes_are_accessed_in_words_and_atomics_are_counted() {
    let b = Builder::new("bytes", [1, 1, 1]);
    b.pointer("out", DType::U8).store(0, b.input("x", DType::U8).load(0));
    let shader = b.finish().hlsl().expect("a valid kernel");
    assert!(!shader.source.contains("uint8_t") && shader.atomics && !shader.atomics_i64);
    let b = Builder::new("count", [1, 1, 1]);
    b.pointer("out", DType::I64).atomic(Atomic::Add, 0, b.int(ScalarType::I64, 1));
    let shader = b.finish().hlsl().expect("a valid kernel");
    assert!(shader.atomics_i64 && shader.source.contains("InterlockedAdd64("));
    assert!(shader.source.starts_with("// 0 bytes shared, 1 invocations, 1 atomics, 1 atomics of 64 bits\n"));
}

#[test]
fn matrix_units_are_refused() {
    let b = Builder::new("product", [32, 1, 1]);
    b.matrix(product_types([16, 16, 16], DType::F16, DType::F32)[2]);
    assert_eq!(b.finish().hlsl().expect_err("no such thing"), Unsupported::Matrix);
}
