//! Every kernel of matrix products compared with sums in f64 on the host: tiles, split k, two
//! launches, matrix units.

mod common;
#[path = "../../compute/src/primitives/validate.rs"]
mod validate;

use common::matrix::{DTYPES, Layout, Matrix, assert_close, product};
use common::{Random, TestHost, Values};
use dml_aten::Call;
use dml_compute::Scalar;
use dml_compute::matmul::choice::Algorithm;
use dml_compute::matmul::epilogue::{Epilogue, MOST_TENSORS, TensorAccess};
use dml_compute::matmul::interface::ProductSpec;
use dml_compute::matmul::matrix_unit_select::{self, MatrixChoice};
use dml_compute::matmul::matrix_unit_tile::MatrixTile;
use dml_compute::matmul::operand::{Access, Axis, Digits, Pattern};
use dml_compute::matmul::two_launches::Waves;
use dml_compute::matmul::{
    Bias, Choice, EpilogueOperands, Output, Problem, ResultTensor, Source, Tile, gemm, gemv, select, split_k,
};
use dml_compute::pointwise::activation::GELU;
use dml_compute::pointwise::ternary::LERP;
use dml_compute::primitives::kernel::KernelSpec;
use dml_engine::AdapterKind;
use dml_kernel::DType;
use validate::accepted;

/// Products in two launches of rows: all layouts of both operands and of the result, with a bias.
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
                finish: EpilogueOperands {
                    out: Output { memory: (&out()).into(), strides: [0, of_out[0], of_out[1]], split: None },
                    alpha: Scalar::Int(1),
                    bias: Some(Bias { tensor: ResultTensor::new((&bias.t).into(), [0, n, 1]), beta: Scalar::Int(1) }),
                    then: None,
                },
            };
            let waves = Waves { first: tile, rows: 32, rest: Choice { tile, split_k: 2 } };
            let mut algorithms = vec![Algorithm::TwoLaunches(waves)];
            if dtype == DType::F16 {
                let tile = emulated(&host, dtype, [8, 16, 8]);
                let waves = Waves { first: tile, rows: 32, rest: Choice { tile, split_k: 2 } };
                algorithms.push(Algorithm::MatrixTwoLaunches(waves));
            }
            let want: Vec<f64> = product(&a, &b).iter().zip(&bias.values).map(|(x, y)| x + y).collect();
            for algorithm in algorithms {
                let out = out();
                problem.finish.out.memory = (&out).into();
                problem.run_in(&call, algorithm).expect("a product");
                let found = host.read(&out);
                let at = |i: i64| found[(i / n * of_out[0] + i % n * of_out[1]) as usize];
                let found: Vec<f64> = (0..m * n).map(at).collect();
                assert_close(dtype, k, &found, &want, &format!("{algorithm:?} {dtype} {layouts:?} {of_out:?}"));
            }
        }
        host.clear();
    }
}

/// The tiles to test: all on a GPU; some on a software adapter, which takes seconds to compile
/// large kernels.
fn tiles(host: &TestHost) -> Vec<Tile> {
    let limits = select::Limits::of(host.device.info());
    let software = host.device.info().kind == AdapterKind::Software;
    let odd = ["64x64x8/4x4/8x4/k2/x", "32x64x16/4x4/4x8/k1/x/s1", "16x16x4/1x2/4x4", "32x32x16/4x1/2x4/k2/g"];
    let lean = ["64x64x8/4x4/8x4/x/l", "32x64x8/4x2/4x8/u/l", "32x32x8/4x1/2x4/s1/l", "32x32x8/1x4/4x2/g/l"];
    select::tiles()
        .chain(odd.iter().chain(&lean).map(|t| Tile::parse(t).expect("a tile")))
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

/// Checks `0.5 * a @ b + bias` of random operands, computed by `run`; for int8 `3 * a @ b + bias`
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
        finish: EpilogueOperands {
            out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
            alpha,
            bias: Some(Bias { tensor: ResultTensor::new((&bias).into(), [0, 0, 1]), beta: Scalar::Int(1) }),
            then: None,
        },
    });
    let want: Vec<f64> =
        product(&a, &b).iter().enumerate().map(|(i, x)| alpha.to_f64() * x + added[i % n as usize]).collect();
    assert_close(dtype, k, &host.read(&out), &want, &format!("{name}, {dtype}, {:?}", [batch, m, n, k]));
}

/// Whole 16-byte vectors along k, along m and n, and partial tiles.
const IN_UNITS: [(Size, [Layout; 2]); 5] = [
    ([2, 64, 64, 64], [Layout::Rows, Layout::Rows]),
    ([1, 72, 40, 104], [Layout::Rows, Layout::Columns]),
    ([2, 40, 72, 72], [Layout::Columns, Layout::Rows]),
    // For int8 too.
    ([1, 80, 48, 176], [Layout::Rows, Layout::Columns]),
    ([2, 48, 80, 80], [Layout::Columns, Layout::Rows]),
];

/// Every second case has k divided.
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
    for dtype in [DType::F16, DType::BF16, DType::I8] {
        let units = matrix_unit_select::own(&info, dtype).into_iter();
        for (tile, _) in units.flat_map(matrix_unit_select::tiles) {
            println!("{dtype}: {tile}");
            check_on_matrix_units(dtype, tile);
        }
    }
}

#[test]
fn products_on_emulated_matrix_units() {
    let host = TestHost::new();
    for (dtype, shape, transposes) in [
        (DType::F16, [8, 16, 8], true),
        (DType::BF16, [8, 8, 16], false),
        (DType::I8, [16, 16, 16], false),
        (DType::I8, [8, 16, 8], true),
    ] {
        check_on_matrix_units(dtype, MatrixTile { transposes, ..emulated(&host, dtype, shape) });
    }
}

/// A small tile of emulated matrices, where every invocation computes a whole matrix.
fn emulated(host: &TestHost, dtype: DType, shape: [u32; 3]) -> MatrixTile {
    let lanes = host.device.info().capabilities.subgroup_size;
    let ([subgroup_m, subgroup_n, _], bytes) = (shape, dtype.bytes() as u32);
    let k = 32 / bytes;
    let (emulated, transposes) = (true, false);
    let tile = MatrixTile { m: 16, n: 16, k, subgroup_m, subgroup_n, shape, lanes, emulated, bytes, transposes };
    assert!(tile.is_valid());
    tile
}

fn accesses(dtype: DType) -> Vec<Access> {
    let digits = |plain, plain_is_slowest| Digits { plain, plain_is_slowest };
    let window =
        |windows, divided| Pattern::Digits { outer: digits(1, true), inner: digits(1, false), windows, divided };
    let pairs = Pattern::Digits { outer: digits(1, true), inner: digits(2, true), windows: 0, divided: false };
    let mut all = Vec::new();
    for (axis, wide) in [(Axis::Outer, true), (Axis::Outer, false), (Axis::Inner, true), (Axis::Inner, false)] {
        all.push(Access { dtype, rounds_to: None, axis, wide, pattern: Pattern::Strided, is_multiple_of_step: false });
    }
    for pattern in [pairs, window(1, false), window(2, true), window(3, false)] {
        for is_multiple_of_step in [false, true] {
            all.push(Access { dtype, rounds_to: None, axis: Axis::Inner, wide: false, pattern, is_multiple_of_step });
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
                let gelu = (dtype.is_float() && flag(1)).then(|| (&GELU).into());
                let epilogue = Epilogue {
                    dtype,
                    wide: flag(0),
                    stores_vectors: false,
                    split_n: flag(1),
                    scaled: flag(2),
                    bias: flag(1).then_some(dtype),
                    bias_wide: flag(0),
                    tensors: [None; MOST_TENSORS],
                    expr: Epilogue::expr_of(dtype, flag(2), flag(1), gelu),
                };
                let index = if flag(2) { dml_kernel::ScalarType::U64 } else { dml_kernel::ScalarType::U32 };
                let (has_k_remainder, split_k) = (flag(0), flag(1));
                let tile = if flag(0) { small } else { large };
                let product = ProductSpec { a, b, epilogue, index, has_k_remainder, split_k, guard: None };
                if dtype == DType::F32 || j < 4 && i < 4 {
                    accepted(&gemm::Spec { tile, has_edge_tiles: flag(1), product }.build());
                }
                let deep = b.wide && b.axis == Axis::Inner;
                let a = Access { wide: a.wide && a.axis == Axis::Inner && deep, ..a };
                let rows = 1 + (i + j) as u32 % 4;
                let product = ProductSpec { a, ..product };
                if dtype == DType::F32 || j < 2 && i < 2 {
                    accepted(
                        &gemv::Spec {
                            threads: 64,
                            along_k: 1 << (j % 4),
                            loads_in_flight: 1 << (j % 3),
                            rows,
                            product,
                        }
                        .build(),
                    );
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
            stores_vectors: false,
            split_n: false,
            scaled: false,
            bias: None,
            bias_wide: false,
            tensors: [None; MOST_TENSORS],
            expr: None,
        };
        let index = dml_kernel::ScalarType::U32;
        let product =
            ProductSpec { a: f[2], b: f[0], epilogue, index, has_k_remainder: false, split_k: true, guard: None };
        accepted(&gemm::Spec { tile, has_edge_tiles: false, product }.build());
    }
    for (index, wide) in [(dml_kernel::ScalarType::U32, true), (dml_kernel::ScalarType::U64, false)] {
        let epilogue = Epilogue {
            dtype: DType::F16,
            wide,
            stores_vectors: false,
            split_n: true,
            scaled: true,
            bias: Some(DType::F16),
            bias_wide: wide,
            tensors: std::array::from_fn(|i| (i < 2).then_some(TensorAccess { dtype: DType::F32, wide })),
            expr: Epilogue::expr_of(DType::F16, true, true, Some((&LERP).into())),
        };
        accepted(&split_k::Spec { sums: DType::F32, epilogue, index, loads_in_flight: 8 }.build());
    }
}
