//! The operators of matrix products compared with sums in f64 on the host: every dtype, layout and
//! edge.

mod common;

use common::matrix::{DTYPES, Layout, Matrix, assert_close, product};
use common::{Random, TestHost, Values, message, number, tensor};
use dml_aten::Arg;
use dml_kernel::DType;

fn check_mm(host: &TestHost, random: &mut Random, dtype: DType, [m, n, k]: [i64; 3], layouts: [Layout; 2]) {
    let a = Matrix::new(host, random, dtype, [1, m, k], layouts[0]);
    let b = Matrix::new(host, random, dtype, [1, k, n], layouts[1]);
    let out = host.run("aten::mm", &[tensor(&a.flat()), tensor(&b.flat())]).expect("a product").remove(0);
    let what = format!("{dtype} {m}x{n}x{k} {layouts:?}");
    assert_close(dtype, k, &host.read(&out), &product(&a, &b), &what);
}

#[test]
fn every_dtype_and_layout() {
    let host = TestHost::new();
    let mut random = Random(1);
    for dtype in DTYPES {
        use Layout::{Columns, Gaps, Rows};
        for (size, layouts) in [
            ([8, 36, 24], [Rows, Rows]),
            ([20, 36, 20], [Rows, Columns]),
            ([8, 36, 24], [Columns, Columns]),
            ([33, 21, 17], [Columns, Rows]),
            ([33, 21, 17], [Gaps, Rows]),
            ([1, 36, 200], [Rows, Columns]),
        ] {
            check_mm(&host, &mut random, dtype, size, layouts);
        }
        host.clear();
    }
}

#[test]
fn every_shape() {
    let host = TestHost::new();
    let mut random = Random(2);
    for size in [
        [1, 1, 1],
        [1, 1, 1000],
        [1, 100, 64],
        [100, 1, 64],
        [2, 300, 33],
        [300, 3, 32],
        [4, 4, 4],
        [5, 7, 3],
        [64, 64, 64],
        [65, 63, 61],
        [17, 200, 5],
        [200, 17, 130],
        [16, 16, 2000],
    ] {
        for layout in [Layout::Rows, Layout::Columns, Layout::Gaps] {
            check_mm(&host, &mut random, DType::F32, size, [layout, Layout::Rows]);
            check_mm(&host, &mut random, DType::F32, size, [layout, Layout::Columns]);
        }
    }
}

#[test]
fn integers_wrap_and_are_exact() {
    let host = TestHost::new();
    let big = i64::MAX / 3;
    let bytes: Vec<u8> = [big, 5, -7, big].iter().flat_map(|x| x.to_le_bytes()).collect();
    let t = host.tensor(DType::I64, &[2, 2], &bytes);
    let out = host.run("aten::mm", &[tensor(&t), tensor(&t)]).expect("a product").remove(0);
    let mut got = vec![0; 32];
    host.device.download(out.data, &mut got).expect("the device works");
    let w = |a: i64, b: i64, c: i64, d: i64| a.wrapping_mul(b).wrapping_add(c.wrapping_mul(d));
    let want = [w(big, big, 5, -7), w(big, 5, 5, big), w(-7, big, big, -7), w(-7, 5, big, big)];
    assert_eq!(got, want.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
}

#[test]
fn batches_and_what_is_added() {
    let host = TestHost::new();
    let mut random = Random(3);
    for dtype in [DType::F32, DType::F16, DType::I32] {
        let a = Matrix::new(&host, &mut random, dtype, [3, 18, 20], Layout::Rows);
        let b = Matrix::new(&host, &mut random, dtype, [3, 20, 24], Layout::Columns);
        let sums = product(&a, &b);
        let out = host.run("aten::bmm", &[tensor(&a.t), tensor(&b.t)]).expect("a product").remove(0);
        assert_close(dtype, 20, &host.read(&out), &sums, "bmm");
        for shape in [&[24][..], &[18, 1], &[18, 24], &[3, 1, 1], &[3, 18, 24]] {
            let numel: i64 = shape.iter().product();
            let values = random.values(dtype, numel as usize);
            let bias = host.of(dtype, shape, &values);
            let at = |z: i64, i: i64, j: i64| {
                let full = bias.expand(&[3, 18, 24]);
                values[(z * full.strides[0] + i * full.strides[1] + j * full.strides[2]) as usize]
            };
            let want: Vec<f64> = (0..3 * 18 * 24)
                .map(|e| 2.0 * sums[e as usize] + 3.0 * at(e / (18 * 24), e / 24 % 18, e % 24))
                .collect();
            let args = [tensor(&bias), tensor(&a.t), tensor(&b.t), number(3.0), number(2.0)];
            let out = host.run("aten::baddbmm", &args).expect("a product").remove(0);
            assert_close(dtype, 60, &host.read(&out), &want, &format!("baddbmm {dtype} {shape:?}"));
        }
        let all: Vec<f64> = (0..18 * 24).map(|e| (0..3).map(|z| sums[z * 18 * 24 + e]).sum()).collect();
        let zero = host.of(dtype, &[], &[0.0]);
        let args = [tensor(&zero), tensor(&a.t), tensor(&b.t), number(1.0), number(1.0)];
        let out = host.run("aten::addbmm", &args).expect("a product").remove(0);
        assert_close(dtype, 60, &host.read(&out), &all, "addbmm");
    }
}

#[test]
fn a_result_in_place_or_over_its_operand() {
    let host = TestHost::new();
    let mut random = Random(4);
    let a = Matrix::new(&host, &mut random, DType::F32, [1, 20, 20], Layout::Rows);
    let b = Matrix::new(&host, &mut random, DType::F32, [1, 20, 20], Layout::Rows);
    let sums = product(&a, &b);
    let args = [tensor(&b.flat()), tensor(&a.flat()), tensor(&b.flat()), number(1.0), number(1.0)];
    let out = host.run("aten::addmm_", &args).expect("a product").remove(0);
    let want: Vec<f64> = sums.iter().zip(&b.values).map(|(s, x)| s + x).collect();
    assert_close(DType::F32, 21, &host.read(&out), &want, "addmm_ over its operand");
    // A transposed `out=`.
    let b = Matrix::new(&host, &mut random, DType::F32, [1, 20, 20], Layout::Rows);
    let out = host.of(DType::F32, &[20, 20], &[9.0; 400]);
    let args = [tensor(&a.flat()), tensor(&b.flat()), tensor(&out.transpose(0, 1))];
    host.run("aten::mm.out", &args).expect("a product");
    let (got, sums) = (host.read(&out), product(&a, &b));
    let turned: Vec<f64> = (0..400).map(|i| got[i % 20 * 20 + i / 20]).collect();
    assert_close(DType::F32, 20, &turned, &sums, "transposed out");
}

#[test]
fn nothing_to_multiply() {
    let host = TestHost::new();
    let (a, b) = (host.of(DType::F32, &[2, 0], &[]), host.of(DType::F32, &[0, 3], &[]));
    let out = host.run("aten::mm", &[tensor(&a), tensor(&b)]).expect("a product").remove(0);
    assert_eq!(host.read(&out), [0.0; 6]);
    let bias = host.of(DType::F32, &[3], &[1.0, 2.0, 3.0]);
    let args = [tensor(&bias), tensor(&a), tensor(&b), number(2.0), number(1.0)];
    let out = host.run("aten::addmm", &args).expect("a product").remove(0);
    assert_eq!(host.read(&out), [2.0, 4.0, 6.0, 2.0, 4.0, 6.0]);
    let nan = host.of(DType::F32, &[1], &[f64::NAN]);
    let x = host.of(DType::F32, &[1, 1], &[3.0]);
    let args = [tensor(&nan), tensor(&x), tensor(&x), number(0.0), number(1.0)];
    let out = host.run("aten::addmm", &args).expect("a product").remove(0);
    assert_eq!(host.read(&out), [9.0], "beta = 0 ignores NaN");
    let empty = host.of(DType::F32, &[0], &[]);
    let out = host.run("aten::dot", &[tensor(&empty), tensor(&empty)]).expect("a product").remove(0);
    assert_eq!(host.read(&out), [0.0]);
}

#[test]
fn wrong_arguments() {
    let host = TestHost::new();
    let t = |dtype, sizes: &[i64]| tensor(&host.of(dtype, sizes, &vec![0.0; sizes.iter().product::<i64>() as usize]));
    let f = |sizes: &[i64]| t(DType::F32, sizes);
    let d = |sizes: &[i64]| t(DType::F64, sizes);
    let fail = |name: &str, args: &[Arg]| message(host.run(name, args));
    let mm = |a: Arg<'static>, b: Arg<'static>| fail("aten::mm", &[a, b]);
    assert_eq!(mm(f(&[2, 3]), f(&[4, 5])), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
    assert_eq!(mm(f(&[2, 3]), d(&[3, 4])), "expected m1 and m2 to have the same dtype, but got: float != double");
    assert_eq!(mm(t(DType::Bool, &[2, 2]), t(DType::Bool, &[2, 2])), "\"mm\" not implemented for 'Bool'");
    assert_eq!(mm(f(&[2]), f(&[2, 2])), "self must be a matrix");
    let one = || number(1.0);
    let add = |name: &str, x, a, b| fail(name, &[x, a, b, one(), one()]);
    assert_eq!(
        add("aten::addmm", f(&[2]), f(&[2, 3]), f(&[3, 4])),
        "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1.  Target \
         sizes: [2, 4].  Tensor sizes: [2]"
    );
    assert_eq!(
        add("aten::addmm_", f(&[4]), f(&[2, 3]), f(&[3, 4])),
        "Bad in-place call: input tensor size [4] and output tensor size [2, 4] should match"
    );
    assert_eq!(
        fail("aten::bmm", &[f(&[2, 3, 4]), f(&[2, 5, 4])]),
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."
    );
    assert_eq!(fail("aten::mv", &[f(&[2, 3]), f(&[4])]), "size mismatch, got input (2), mat (2x3), vec (4)");
    assert_eq!(
        fail("aten::mm.out", &[f(&[2, 3]), f(&[3, 4]), d(&[2, 4])]),
        "Expected out tensor to have dtype float, but got double instead"
    );
}
