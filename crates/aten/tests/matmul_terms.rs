//! Products of float32 from terms of 16 bits, on emulated matrix units and on the adapter's,
//! compared with sums in f64.

mod common;
#[path = "../../compute/src/primitives/validate.rs"]
mod validate;

use common::{Random, TestHost, Values};
use dml_aten::Call;
use dml_compute::Scalar;
use dml_compute::matmul::choice::Algorithm;
use dml_compute::matmul::epilogue::{Epilogue, MOST_TENSORS};
use dml_compute::matmul::guard::Tiles;
use dml_compute::matmul::interface::ProductSpec;
use dml_compute::matmul::matrix_unit_gemm::{self, Padding};
use dml_compute::matmul::matrix_unit_select::{self, MatrixChoice, SplitChoice};
use dml_compute::matmul::matrix_unit_tile::{MatrixTile, Units};
use dml_compute::matmul::operand::{Access, Axis, Pattern};
use dml_compute::matmul::split::{self, Form};
use dml_compute::matmul::{Bias, Choice, EpilogueOperands, Output, Problem, ResultTensor, Source, Tile, gemm, select};
use dml_compute::primitives::kernel::KernelSpec;
use dml_kernel::{DType, ScalarType};
use validate::accepted;

/// Operands whose rows (columns) are contiguous along k, across it, or not at all.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Layout {
    AlongK,
    Across,
    Gaps,
}

struct Operand {
    values: Vec<f32>,
    source: Source,
}

/// `batch` matrices of `outer x k` elements with memory layout `layout`.
fn operand(host: &TestHost, values: Vec<f32>, [batch, outer, k]: [i64; 3], layout: Layout) -> Operand {
    let strides = match layout {
        Layout::AlongK => [outer * k, k, 1],
        Layout::Across => [outer * k, 1, outer],
        Layout::Gaps => [outer * (k * 3 + 1), k * 3 + 1, 3],
    };
    let mut memory = vec![f32::NAN; (batch * strides[0]) as usize];
    for (i, &x) in (0..).zip(&values) {
        let place = [i / (outer * k), i / k % outer, i % k].iter().zip(strides).map(|(i, s)| i * s).sum::<i64>();
        memory[place as usize] = x;
    }
    let t = host.floats(&[memory.len() as i64], &memory);
    let batch = if batch == 1 { 0 } else { strides[0] };
    Operand { values, source: Source::strided(&t, [outer, k], [strides[1], strides[2]], batch) }
}

/// `0.5 * a @ b + bias` as computed by `algorithm`, and in f64, and the sums of magnitudes.
fn run(host: &TestHost, size: [i64; 4], [a, b]: [&Operand; 2], algorithm: Algorithm) -> Vec<[f64; 3]> {
    let call = Call::named("gemm", dml_engine::FaultKind::Index, &[], &host.device, host);
    let [batch, m, n, k] = size;
    let added: Vec<f32> = (0..n).map(|i| i as f32 / 8.0).collect();
    let bias = host.floats(&[n], &added);
    let out = host.floats(&[batch, m, n], &vec![f32::NAN; (batch * m * n) as usize]);
    let finish = EpilogueOperands {
        out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
        alpha: Scalar::Double(0.5),
        bias: Some(Bias { tensor: ResultTensor::new((&bias).into(), [0, 0, 1]), beta: Scalar::Int(1) }),
        then: None,
    };
    let problem = Problem { size, a: a.source.clone(), b: b.source.clone(), finish };
    problem.run_in(&call, algorithm).expect("it runs");
    let row = |of: &Operand, z: i64, rows: i64, i: i64| -> Vec<f64> {
        let z = if of.source.batch == 0 { 0 } else { z };
        let begin = ((z * rows + i) * k) as usize;
        of.values[begin..begin + k as usize].iter().map(|&x| f64::from(x)).collect()
    };
    let results = host.read(&out).into_iter().zip(0i64..).map(|(got, i)| {
        let (left, right) = (row(a, i / (m * n), m, i / n % m), row(b, i / (m * n), n, i % n));
        let bias = f64::from(added[(i % n) as usize]);
        let products = || left.iter().zip(&right).map(|(x, y)| 0.5 * x * y);
        [got, products().sum::<f64>() + bias, products().map(f64::abs).sum::<f64>() + bias]
    });
    results.collect()
}

fn plain() -> Tile {
    Tile::parse("16x16x4/1x2/4x4").expect("a tile")
}

/// A tile of emulated units, and one of the adapter's units, if it has any.
fn tiles(host: &TestHost, dtype: DType, emulated: [u32; 3]) -> Vec<MatrixTile> {
    let info = host.device.info();
    let lanes = info.capabilities.subgroup_size;
    let [subgroup_m, subgroup_n, _] = emulated;
    let mut tiles = Vec::new();
    if info.capabilities.subgroup_shuffle {
        tiles.push(MatrixTile {
            m: 16,
            n: 32,
            k: 16,
            subgroup_m,
            subgroup_n,
            shape: emulated,
            lanes,
            emulated: true,
            bytes: 2,
            transposes: true,
        });
    }
    let units = matrix_unit_select::own(info, dtype).into_iter();
    let limits = select::Limits::of(info);
    let fits = |tile: &MatrixTile| {
        16 * tile.vectors_of_terms() <= limits.shared_memory && tile.threads() <= limits.invocations
    };
    tiles.extend(units.flat_map(matrix_unit_select::tiles).map(|(tile, _)| tile).filter(fits));
    tiles
}

const CASES: [([i64; 4], [Layout; 2]); 4] = [
    ([1, 72, 76, 68], [Layout::AlongK, Layout::AlongK]),
    ([2, 37, 61, 31], [Layout::Gaps, Layout::Across]),
    ([1, 40, 24, 700], [Layout::Across, Layout::Gaps]),
    ([1, 5, 130, 520], [Layout::AlongK, Layout::Across]),
];

#[test]
fn random_products_in_halves_are_as_near_as_plain_ones() {
    let host = TestHost::new();
    let mut random = Random(21);
    for tile in tiles(&host, DType::F16, [8, 16, 8]) {
        for (size, layouts) in CASES {
            let [batch, m, n, k] = size;
            let mut values = |len: i64| -> Vec<f32> { (0..len).map(|_| random.signed_unit() as f32).collect() };
            let a = operand(&host, values(batch * m * k), [batch, m, k], layouts[0]);
            // A broadcast matrix.
            let b = operand(&host, values(n * k), [1, n, k], layouts[1]);
            let error = |algorithm: Algorithm| {
                let results = run(&host, size, [&a, &b], algorithm);
                let sum = |f: fn(&[f64; 3]) -> f64| results.iter().map(f).sum::<f64>();
                (sum(|[got, want, _]| (got - want).powi(2)) / sum(|[_, want, _]| want.powi(2))).sqrt()
            };
            let (terms, floats) = (
                error(Algorithm::SplitFloat(SplitChoice { tile, fallback_tile: plain() })),
                error(Algorithm::Plain(Choice { tile: plain(), split_k: 1 })),
            );
            assert!(terms <= 1.2 * floats.max(1e-7), "{tile} {size:?}: {terms} instead of {floats}");
            host.device.synchronize().expect("the device works");
        }
        host.clear();
    }
}

/// Checks a split product with a tolerance of `bound` times the sums of magnitudes, or what float32
/// would give.
fn check_split(host: &TestHost, tile: MatrixTile, [m, n, k]: [i64; 3], [left, right]: [Vec<f32>; 2], bound: f64) {
    let a = operand(host, left, [1, m, k], Layout::AlongK);
    let b = operand(host, right, [1, n, k], Layout::Across);
    let results =
        run(host, [1, m, n, k], [&a, &b], Algorithm::SplitFloat(SplitChoice { tile, fallback_tile: plain() }));
    for (i, [got, want, magnitudes]) in results.into_iter().enumerate() {
        let near = if magnitudes.is_finite() && magnitudes > f64::from(f32::MAX) {
            // A result that overflows on the way may be NaN, as with any order of a sum.
            got.is_nan() || got.is_infinite() || want.abs() < f64::from(f32::MAX)
        } else if want.is_finite() {
            (got - want).abs() <= bound * magnitudes + 1e-37
        } else {
            got == want || (got.is_nan() && want.is_nan())
        };
        assert!(near, "{tile}: result {i} is {got}, not {want}");
    }
    host.device.synchronize().expect("the device works");
}

const NUMBERS: [i64; 3] = [70, 67, 40];

#[test]
fn every_magnitude() {
    let host = TestHost::new();
    let mut random = Random(22);
    let [m, n, k] = NUMBERS;
    for tile in tiles(&host, DType::F16, [8, 8, 16]) {
        // Subnormal numbers too, since float32 arithmetic is not used for them.
        for scales in [[1e-30f64, 1e30, 1.0, 0.0], [3e-39, 1e-44, 1e-41, 1e-37]] {
            let mut values = |rows: i64, scales: [f64; 4]| -> Vec<f32> {
                (0..rows * k).map(|i| (scales[(i / k % 4) as usize] * random.signed_unit()) as f32).collect()
            };
            let operands = [values(m, scales), values(n, [1e30, 1.0, 1e28, 1e-30])];
            check_split(&host, tile, NUMBERS, operands, 2f64.powi(-20));
        }
        host.clear();
    }
}

#[test]
fn what_terms_do_not_hold() {
    let host = TestHost::new();
    let mut random = Random(24);
    let [m, n, k] = NUMBERS;
    for tile in tiles(&host, DType::F16, [8, 8, 16]) {
        let mut values = |rows: i64| -> Vec<f32> { (0..rows * k).map(|_| random.signed_unit() as f32).collect() };
        let (left, right) = (values(m), values(n));
        // Significant elements far below their row's largest, which is multiplied by zero: a single
        // term represents them, or none does.
        for small in [3e-10, 1e-20] {
            let (mut left, mut right) = (left.clone(), right.clone());
            left[..k as usize].fill(small);
            right[..k as usize].fill(7.0);
            (left[0], right[0]) = (1.0, 0.0);
            check_split(&host, tile, NUMBERS, [left, right], 2f64.powi(-10));
        }
        // Products of two such elements.
        let (mut small_left, mut small_right) = (left.clone(), right.clone());
        small_left[..3].copy_from_slice(&[1.0, 5e-10, 0.0]);
        small_right[..3].copy_from_slice(&[0.0, 5e-10, 1.0]);
        small_left[3..k as usize].fill(0.0);
        small_right[3..k as usize].fill(0.0);
        check_split(&host, tile, NUMBERS, [small_left, small_right], 2f64.powi(-10));
        for value in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let (mut left, mut right) = (left.clone(), right.clone());
            left[(66 * k + 4) as usize] = value;
            right[(66 * k + 39) as usize] = value;
            right[(3 * k + 4) as usize] = 0.0;
            check_split(&host, tile, NUMBERS, [left, right], 2f64.powi(-20));
        }
        host.clear();
    }
}

#[test]
fn products_of_bfloat16() {
    let host = TestHost::new();
    let mut random = Random(23);
    for tile in tiles(&host, DType::BF16, [8, 8, 16]) {
        for ((size, layouts), split_k) in CASES.into_iter().zip([1, 2, 1, 3]) {
            let [batch, m, n, k] = size;
            let a = random.values(DType::F32, (batch * m * k) as usize).iter().map(|&x| x as f32).collect();
            let b = random.values(DType::F32, (batch * n * k) as usize).iter().map(|&x| x as f32).collect();
            let mut a = operand(&host, a, [batch, m, k], layouts[0]);
            let mut b = operand(&host, b, [batch, n, k], layouts[1]);
            for of in [&mut a, &mut b] {
                of.values.iter_mut().for_each(|x| *x = half::bf16::from_f32(*x).to_f32());
            }
            for [got, want, magnitudes] in
                run(&host, size, [&a, &b], Algorithm::RoundedFloat(MatrixChoice { tile, split_k }))
            {
                assert!((got - want).abs() <= 1e-6 * magnitudes, "{tile} {size:?}: {got}, not {want}");
            }
            host.device.synchronize().expect("the device works");
        }
        host.clear();
    }
}

#[test]
fn every_variant_is_valid() {
    let access = |dtype, axis, wide| Access {
        dtype,
        rounds_to: None,
        axis,
        wide,
        pattern: Pattern::Strided,
        is_multiple_of_step: false,
    };
    let units = Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2, transposes: true };
    let epilogue = Epilogue {
        dtype: DType::F32,
        wide: true,
        stores_vectors: false,
        split_n: false,
        scaled: true,
        bias: None,
        bias_wide: false,
        tensors: [None; MOST_TENSORS],
        expr: Epilogue::expr_of(DType::F32, true, false, None),
    };
    for (i, (axis, wide)) in
        [(Axis::Inner, true), (Axis::Outer, true), (Axis::Inner, false), (Axis::Outer, false)].into_iter().enumerate()
    {
        let index = if wide { ScalarType::U32 } else { ScalarType::U64 };
        let floats = access(DType::F32, axis, wide);
        accepted(&split::LargestSpec { access: floats, index }.build());
        for form in [Form::Halves, Form::Rounded] {
            accepted(&split::Spec { form, access: floats, index }.build());
        }
        let of = |a: Access, guard| ProductSpec {
            a,
            b: a,
            epilogue,
            index,
            has_k_remainder: false,
            split_k: false,
            guard: Some(guard),
        };
        accepted(
            &gemm::Spec { tile: plain(), has_edge_tiles: true, product: of(floats, Tiles::Unrepresentable) }.build(),
        );
        let (tile, _) = matrix_unit_select::tiles(units).last().expect("there are tiles");
        // Debian 12's spirv-val does not know cooperative matrices.
        let tile = MatrixTile { emulated: true, ..tile };
        let product = of(access(DType::F16, axis, true), Tiles::Representable);
        let padding = Padding::Terms { uses_accumulator_buffer: i % 2 == 0 };
        accepted(
            &matrix_unit_gemm::Spec { tile, has_edge_tiles: wide, vector_loads: [true; 2], padding, product }.build(),
        );
    }
}
