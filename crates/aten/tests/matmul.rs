//! Products of matrices against sums in f64 on the host: every dtype, layout, tile and edge.

mod common;
#[path = "../../compute/src/primitives/validate.rs"]
mod validate;

use common::{Random, TestHost, Values, message, number, tensor};
use dml_aten::{Arg, Call};
use dml_compute::matmul::choice::Way;
use dml_compute::matmul::epilogue::Epilogue;
use dml_compute::matmul::interface::ProductSpec;
use dml_compute::matmul::matrix_select::{self, MatrixChoice};
use dml_compute::matmul::matrix_tile::{MatrixTile, Units};
use dml_compute::matmul::operand::{Access, Axis, Digits, Pattern};
use dml_compute::matmul::waves::Waves;
use dml_compute::matmul::{Bias, Choice, Finish, Output, Problem, Source, Tile, gemm, gemv, select, split_k};
use dml_compute::pointwise::activation::{GELU, RELU};
use dml_compute::primitives::kernel::KernelSpec;
use dml_compute::{Scalar, View};
use dml_engine::AdapterKind;
use dml_kernel::DType;
use validate::accepted;

const DTYPES: [DType; 9] =
    [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8];

/// A matrix of `sizes` (the last two are its rows and columns) whose elements lie in memory as
/// `layout` says: rows or columns contiguous, or neither.
struct Matrix {
    t: View,
    values: Vec<f64>,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Layout {
    Rows,
    Columns,
    Gaps,
}

impl Matrix {
    fn new(host: &TestHost, random: &mut Random, dtype: DType, [batch, m, n]: [i64; 3], layout: Layout) -> Matrix {
        let values = random.values(dtype, (batch * m * n) as usize);
        let strides = match layout {
            Layout::Rows => [m * n, n, 1],
            Layout::Columns => [m * n, 1, m],
            Layout::Gaps => [m * (n * 3 + 1), n * 3 + 1, 3],
        };
        let len = if layout == Layout::Gaps { batch * strides[0] } else { batch * m * n };
        let mut memory = vec![0.0; len as usize];
        for b in 0..batch {
            for i in 0..m {
                for j in 0..n {
                    memory[(b * strides[0] + i * strides[1] + j * strides[2]) as usize] =
                        values[((b * m + i) * n + j) as usize];
                }
            }
        }
        let t = host.of(dtype, &[len], &memory).as_strided(&[batch, m, n], &strides, 0);
        Matrix { t, values }
    }

    /// The matrix alone, where there is no batch.
    fn flat(&self) -> View {
        self.t.as_strided(&self.t.sizes[1..], &self.t.strides[1..], 0)
    }
}

/// `[batch, m, n]` sums over k in f64.
fn product(a: &Matrix, b: &Matrix) -> Vec<f64> {
    let ([batch, m, k], n) = ([a.t.sizes[0], a.t.sizes[1], a.t.sizes[2]].map(|x| x as usize), b.t.sizes[2] as usize);
    let mut out = vec![0.0; batch * m * n];
    for z in 0..batch {
        for i in 0..m {
            for l in 0..k {
                let x = a.values[(z * m + i) * k + l];
                for j in 0..n {
                    out[(z * m + i) * n + j] += x * b.values[(z * k + l) * n + j];
                }
            }
        }
    }
    out
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-23),
        DType::F64 => 2f64.powi(-52),
        _ => 0.0,
    }
}

/// One rounding of the result, and those of a sum of k products below 1 in f32 or f64.
fn assert_close(dtype: DType, k: i64, got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let sums = if dtype == DType::F64 { 2f64.powi(-52) } else { 2f64.powi(-23) };
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let wrapped = match dtype {
            DType::I8 => f64::from(*w as i64 as i8),
            DType::U8 => f64::from(*w as i64 as u8),
            DType::I16 => f64::from(*w as i64 as i16),
            _ => *w,
        };
        let bound = if dtype.is_float() { epsilon(dtype) * w.abs() + sums * (k as f64 + 1.0) } else { 0.0 };
        assert!((g - wrapped).abs() <= bound, "{what}: element {i} is {g}, not {wrapped}");
    }
}

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

/// Rows in two launches: layouts of both operands and of the result, with a bias.
#[test]
fn whole_waves_and_a_rest() {
    let host = TestHost::new();
    let mut random = Random(11);
    let call = Call::named("product", dml_engine::FaultKind::Index, &[], &host.device, &host);
    let tile = Tile { stages: 1, ..Tile::new(16, 16, 4, [4, 4], [4, 4]) };
    let [m, n, k] = [45, 24, 40];
    for dtype in [DType::F32, DType::F16, DType::F64, DType::I32] {
        for (layouts, of_out) in [
            ([Layout::Rows, Layout::Columns], [n, 1]),
            ([Layout::Columns, Layout::Rows], [1, m]),
            ([Layout::Gaps, Layout::Gaps], [n, 1]),
        ] {
            let a = Matrix::new(&host, &mut random, dtype, [1, m, k], layouts[0]);
            let b = Matrix::new(&host, &mut random, dtype, [1, k, n], layouts[1]);
            let bias = Matrix::new(&host, &mut random, dtype, [1, m, n], Layout::Rows);
            let out = || host.of(dtype, &[m * n], &vec![9.0; (m * n) as usize]);
            let [sa, sb] = [&a.t, &b.t].map(|t| t.strides.clone());
            let mut problem = Problem {
                size: [1, m, n, k],
                a: Source::strided(&a.t, [m, k], [sa[1], sa[2]], 0),
                b: Source::strided(&b.t, [n, k], [sb[2], sb[1]], 0),
                finish: Finish {
                    out: Output { memory: (&out()).into(), strides: [0, of_out[0], of_out[1]], split: None },
                    alpha: Scalar::Int(1),
                    bias: Some(Bias { memory: (&bias.t).into(), strides: [0, n, 1], beta: Scalar::Int(1) }),
                    activation: None,
                },
            };
            let waves = Waves { first: tile, rows: 32, rest: Choice { tile, split_k: 2 } };
            let mut ways = vec![Way::Waves(waves)];
            if dtype == DType::F16 {
                let tile = emulated(&host, dtype, [8, 16, 8]);
                let waves = Waves { first: tile, rows: 32, rest: Choice { tile, split_k: 2 } };
                ways.push(Way::MatrixWaves(waves));
            }
            let want: Vec<f64> = product(&a, &b).iter().zip(&bias.values).map(|(x, y)| x + y).collect();
            for way in ways {
                let out = out();
                problem.finish.out.memory = (&out).into();
                problem.run_in(&call, way).expect("a product");
                let found = host.read(&out);
                let at = |i: i64| found[(i / n * of_out[0] + i % n * of_out[1]) as usize];
                let found: Vec<f64> = (0..m * n).map(at).collect();
                assert_close(dtype, k, &found, &want, &format!("{way:?} {dtype} {layouts:?} {of_out:?}"));
            }
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
    // A transposed out.
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

/// The tiles that an adapter runs: on a software adapter, which compiles large kernels for seconds,
/// some of them.
fn tiles(host: &TestHost) -> Vec<Tile> {
    let limits = select::Limits::of(host.device.info());
    let software = host.device.info().kind == AdapterKind::Software;
    let odd = ["64x64x8/4x4/8x4/k2/x", "32x64x16/4x4/4x8/k1/x/s1", "16x16x4/1x2/4x4", "32x32x16/4x1/2x4/k2/g"];
    select::tiles()
        .chain(odd.iter().map(|t| Tile::parse(t).expect("a tile")))
        .filter(|t| limits.allow(t, 4) && (!software || t.thread_m * t.thread_n * t.k <= 256))
        .collect()
}

#[test]
fn every_tile_with_and_without_split_k() {
    let host = TestHost::new();
    let call = Call::named("gemm", dml_engine::FaultKind::Index, &[], &host.device, &host);
    let mut random = Random(5);
    for tile in tiles(&host) {
        for (size, layouts) in SIZES {
            for split_k in [1, 3] {
                check(
                    &host,
                    &mut random,
                    DType::F32,
                    (size, layouts),
                    &format!("{tile} split-K {split_k}"),
                    |problem| {
                        problem.run_as(&call, Choice { tile, split_k }).expect("it runs");
                    },
                );
            }
        }
        host.device.synchronize().expect("the device works");
        host.clear();
    }
}

type Size = [i64; 4];

const SIZES: [(Size, [Layout; 2]); 3] = [
    ([2, 72, 76, 68], [Layout::Rows, Layout::Rows]),
    ([1, 37, 61, 131], [Layout::Columns, Layout::Gaps]),
    ([2, 68, 36, 128], [Layout::Columns, Layout::Columns]),
];

/// Checks `0.5 * a @ b + bias` of random operands, as `run` computes it; of int8 `3 * a @ b + bias`
/// in int32.
fn check(
    host: &TestHost,
    random: &mut Random,
    dtype: DType,
    ([batch, m, n, k], layouts): (Size, [Layout; 2]),
    name: &str,
    run: impl FnOnce(Problem),
) {
    let a = Matrix::new(host, random, dtype, [batch, m, k], layouts[0]);
    let b = Matrix::new(host, random, dtype, [batch, k, n], layouts[1]);
    let (dtype, alpha) = if dtype == DType::I8 { (DType::I32, Scalar::Int(3)) } else { (dtype, Scalar::Double(0.5)) };
    let bias = host.of(dtype, &[n], &random.values(dtype, n as usize));
    let added = host.read(&bias);
    let out = host.of(dtype, &[batch, m, n], &vec![f64::NAN; (batch * m * n) as usize]);
    let s = (&a.t.strides, &b.t.strides);
    run(Problem {
        size: [batch, m, n, k],
        a: Source::strided(&a.t, [m, k], [s.0[1], s.0[2]], s.0[0]),
        b: Source::strided(&b.t, [n, k], [s.1[2], s.1[1]], s.1[0]),
        finish: Finish {
            out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
            alpha,
            bias: Some(Bias { memory: (&bias).into(), strides: [0, 0, 1], beta: Scalar::Int(1) }),
            activation: None,
        },
    });
    let want: Vec<f64> =
        product(&a, &b).iter().enumerate().map(|(i, x)| alpha.to_f64() * x + added[i % n as usize]).collect();
    assert_close(dtype, k, &host.read(&out), &want, &format!("{name}, {dtype}, {:?}", [batch, m, n, k]));
}

/// Whole units of 16 bytes along k, along m and n, and with ragged edges.
const IN_UNITS: [(Size, [Layout; 2]); 5] = [
    ([2, 64, 64, 64], [Layout::Rows, Layout::Rows]),
    ([1, 72, 40, 104], [Layout::Rows, Layout::Columns]),
    ([2, 40, 72, 72], [Layout::Columns, Layout::Rows]),
    // Of int8 too.
    ([1, 80, 48, 176], [Layout::Rows, Layout::Columns]),
    ([2, 48, 80, 80], [Layout::Columns, Layout::Rows]),
];

/// Every second of the cases with k divided.
fn check_on_matrix_units(dtype: DType, tile: MatrixTile) {
    let host = TestHost::new();
    let call = Call::named("gemm", dml_engine::FaultKind::Index, &[], &host.device, &host);
    let limits = select::Limits::of(host.device.info());
    if tile.shared_bytes() > limits.shared_memory || tile.threads() > limits.invocations {
        return;
    }
    let mut random = Random(11);
    for (case, split_k) in IN_UNITS.into_iter().chain(SIZES).zip([1, 3].into_iter().cycle()) {
        check(&host, &mut random, dtype, case, &format!("{tile} split-K {split_k}"), |problem| {
            problem.run_on_matrix_units(&call, MatrixChoice { tile, split_k }).expect("it runs");
        });
    }
    host.device.synchronize().expect("the device works");
}

#[test]
fn products_on_the_adapter_s_matrix_units() {
    let info = TestHost::new().device.info().clone();
    // Software adapters take minutes to compile the larger tiles.
    let small = info.kind == AdapterKind::Software;
    for dtype in [DType::F16, DType::BF16, DType::I8] {
        let shapes = matrix_select::shapes(&info, dtype);
        let units = shapes.into_iter().map(|shape| Units {
            shape,
            lanes: info.capabilities.subgroup_size,
            emulated: false,
            small,
            bytes: dtype.bytes() as u32,
        });
        for (tile, _) in units.flat_map(matrix_select::tiles) {
            println!("{dtype}: {tile}");
            check_on_matrix_units(dtype, tile);
        }
    }
}

#[test]
fn products_on_emulated_matrix_units() {
    let host = TestHost::new();
    let shapes =
        [(DType::F16, [8, 16, 8]), (DType::BF16, [8, 8, 16]), (DType::I8, [16, 16, 16]), (DType::I8, [8, 16, 8])];
    for (dtype, shape) in shapes {
        check_on_matrix_units(dtype, emulated(&host, dtype, shape));
    }
}

/// A small tile of emulated matrices: every invocation computes all of one.
fn emulated(host: &TestHost, dtype: DType, shape: [u32; 3]) -> MatrixTile {
    let lanes = host.device.info().capabilities.subgroup_size;
    let ([subgroup_m, subgroup_n, _], bytes) = (shape, dtype.bytes() as u32);
    let k = 32 / bytes;
    let tile = MatrixTile { m: 16, n: 16, k, subgroup_m, subgroup_n, shape, lanes, emulated: true, bytes };
    assert!(tile.is_valid());
    tile
}

fn accesses(dtype: DType) -> Vec<Access> {
    let digits = |plain, plain_first| Digits { plain, plain_first };
    let window =
        |windows, divided| Pattern::Digits { outer: digits(1, true), inner: digits(1, false), windows, divided };
    let pairs = Pattern::Digits { outer: digits(1, true), inner: digits(2, true), windows: 0, divided: false };
    let mut all = Vec::new();
    for (axis, wide) in [(Axis::Outer, true), (Axis::Outer, false), (Axis::Inner, true), (Axis::Inner, false)] {
        all.push(Access { dtype, rounded: None, axis, wide, pattern: Pattern::Strided, whole_steps: false });
    }
    for pattern in [pairs, window(1, false), window(2, true), window(3, false)] {
        for whole_steps in [false, true] {
            all.push(Access { dtype, rounded: None, axis: Axis::Inner, wide: false, pattern, whole_steps });
        }
    }
    all
}

#[test]
fn every_variant_is_valid() {
    let small = Tile::parse("16x16x16/4x4/2x2/k2").expect("a tile");
    let large = Tile::parse("64x64x8/8x4/8x4/x/g").expect("a tile");
    for dtype in DTYPES {
        for (i, &a) in accesses(dtype).iter().enumerate() {
            for (j, &b) in accesses(dtype).iter().enumerate() {
                let flag = |bit: usize| (i + j) >> bit & 1 == 1;
                let epilogue = Epilogue {
                    dtype,
                    wide: flag(0),
                    in_units: false,
                    split_n: flag(1),
                    scaled: flag(2),
                    bias: flag(1).then_some(dtype),
                    bias_wide: flag(0),
                    activation: (dtype.is_float() && flag(1)).then_some(&GELU),
                };
                let index = if flag(2) { dml_kernel::ScalarType::U64 } else { dml_kernel::ScalarType::U32 };
                let (ragged_k, split_k) = (flag(0), flag(1));
                let tile = if flag(0) { small } else { large };
                let product = ProductSpec { a, b, epilogue, index, ragged_k, split_k, guard: None };
                if dtype == DType::F32 || j < 4 && i < 4 {
                    accepted(&gemm::Spec { tile, ragged_edge: flag(1), product }.build());
                }
                let deep = b.wide && b.axis == Axis::Inner;
                let a = Access { wide: a.wide && a.axis == Axis::Inner && deep, ..a };
                let rows = 1 + (i + j) as u32 % 4;
                let product = ProductSpec { a, ..product };
                if dtype == DType::F32 || j < 2 && i < 2 {
                    accepted(&gemv::Spec { threads: 64, along_k: 1 << (j % 4), rows, product }.build());
                }
            }
        }
    }
    for tile in select::tiles().filter(|t| t.shared_bytes(8) <= 96 << 10) {
        let f = accesses(DType::F64);
        let dtype = DType::F64;
        let epilogue = Epilogue {
            dtype,
            wide: true,
            in_units: false,
            split_n: false,
            scaled: false,
            bias: None,
            bias_wide: false,
            activation: None,
        };
        let index = dml_kernel::ScalarType::U32;
        let product = ProductSpec { a: f[2], b: f[0], epilogue, index, ragged_k: false, split_k: true, guard: None };
        accepted(&gemm::Spec { tile, ragged_edge: false, product }.build());
    }
    for (index, wide) in [(dml_kernel::ScalarType::U32, true), (dml_kernel::ScalarType::U64, false)] {
        let epilogue = Epilogue {
            dtype: DType::F16,
            wide,
            in_units: false,
            split_n: true,
            scaled: true,
            bias: Some(DType::F16),
            bias_wide: wide,
            activation: wide.then_some(&RELU),
        };
        accepted(&split_k::Spec { sums: DType::F32, epilogue, index }.build());
    }
}
