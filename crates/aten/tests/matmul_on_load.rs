//! Products of operands that are float32 in memory and rounded to 16 bits on load: the same bits as
//! for operands that were converted before, with every kind of kernel.

mod common;

use common::{Random, TestHost, Values, message, number, tensor};
use dml_aten::{Arg, Call};
use dml_compute::matmul::matrix_unit_select::{self, MatrixChoice};
use dml_compute::matmul::matrix_unit_tile::MatrixTile;
use dml_compute::matmul::{Bias, Choice, EpilogueOperands, Output, Problem, ResultTensor, Source, Tile, select};
use dml_compute::{Scalar, View};
use dml_engine::AdapterKind;
use dml_kernel::DType;

const HALVES: [DType; 2] = [DType::F16, DType::BF16];
/// Which operands are float32 in memory.
const WHICH: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

/// Numbers that rounding to 16 bits treats differently: ties to even, just below and above
/// float16's overflow, subnormal numbers of both dtypes, infinities and NaN.
const SPECIAL: [f64; 20] = [
    1.000_488_281_25,
    1.001_464_843_75,
    1.003_906_25,
    1.011_718_75,
    65_519.0,
    65_520.0,
    -70_000.0,
    3.39e38,
    3.4e38,
    -6.1e-5,
    5.96e-8,
    -2.98e-8,
    2.981e-8,
    9.3e-41,
    -1e-45,
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// A batch of matrices `outer x k` with some strides, in float32 and converted.
struct Operand {
    floats: View,
    halves: View,
}

/// The contiguous index: k, the outer index, or none (with gaps).
#[derive(Copy, Clone, Debug)]
enum Layout {
    Inner,
    Outer,
    Gaps,
}

impl Operand {
    /// Numbers near 1, with some special ones in every `special`th matrix unless that is 0.
    fn new(
        host: &TestHost,
        random: &mut Random,
        dtype: DType,
        size: [i64; 3],
        layout: Layout,
        special: u64,
    ) -> Operand {
        let [batch, outer, k] = size;
        let (len, strides) = match layout {
            Layout::Inner => (batch * outer * k, [outer * k, k, 1]),
            Layout::Outer => (batch * outer * k, [outer * k, 1, outer]),
            Layout::Gaps => (batch * outer * (3 * k + 1), [outer * (3 * k + 1), 3 * k + 1, 3]),
        };
        let mut values: Vec<f64> = (0..len).map(|_| random.signed_unit()).collect();
        if special > 0 {
            for value in &mut values {
                if random.below(special) == 0 {
                    *value = SPECIAL[random.below(SPECIAL.len() as u64) as usize];
                }
            }
        }
        let floats = host.of(DType::F32, &[len], &values);
        let halves = converted(host, &floats, dtype);
        let view = |t: View| t.as_strided(&size, &strides, 0);
        Operand { floats: view(floats), halves: view(halves) }
    }

    fn read(&self, as_float: bool) -> &View {
        if as_float { &self.floats } else { &self.halves }
    }
}

/// The result of a cast: a contiguous tensor in another dtype.
fn converted(host: &TestHost, t: &View, dtype: DType) -> View {
    let out = host.of(dtype, &t.sizes, &vec![0.0; t.numel() as usize]);
    let args = [tensor(t), tensor(&out), Arg::Scalar(Scalar::Bool(false))];
    host.run("aten::_copy_from", &args).expect("a copy");
    out
}

/// The bits of 16-bit elements. The bits of a NaN are up to the driver, so all NaN are made equal.
fn bits(host: &TestHost, t: &View) -> Vec<u16> {
    let mut bytes = vec![0; (t.numel() as u64 * 2) as usize];
    host.device.download(t.data, &mut bytes).expect("the device works");
    let nan = if t.dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
    let bits = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    bits.map(|x| if x & 0x7fff > nan { 0x7fff } else { x }).collect()
}

/// Computes `0.5 * a @ b + bias` of converted operands, and with those that `which` selects in
/// float32, and compares the bits.
fn check(
    host: &TestHost,
    dtype: DType,
    [batch, m, n, k]: [i64; 4],
    [a, b]: [&Operand; 2],
    which: [bool; 2],
    what: &str,
    mut run: impl FnMut(&Call, &mut Problem),
) {
    let call = Call::named("gemm", dml_engine::FaultKind::Index, &[], &host.device, host);
    let bias = host.of(dtype, &[n], &(0..n).map(|i| i as f64 / 8.0).collect::<Vec<_>>());
    let source = |t: &View, outer: i64| {
        let s = &t.strides;
        Source::strided(t, [outer, k], [s[1], s[2]], if batch == 1 { 0 } else { s[0] }).with_rounding(dtype)
    };
    let [written, read] = [[false; 2], which].map(|which| {
        let out = host.of(dtype, &[batch, m, n], &vec![f64::NAN; (batch * m * n) as usize]);
        let mut problem = Problem {
            size: [batch, m, n, k],
            a: source(a.read(which[0]), m),
            b: source(b.read(which[1]), n),
            finish: EpilogueOperands {
                out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
                alpha: Scalar::Double(0.5),
                bias: Some(Bias { tensor: ResultTensor::new((&bias).into(), [0, 0, 1]), beta: Scalar::Int(1) }),
                then: None,
            },
        };
        run(&call, &mut problem);
        bits(host, &out)
    });
    assert!(written == read, "{what}, {dtype}, {:?}, {which:?}", [batch, m, n, k]);
}

/// `[batch, m, n, k]`, and the operands' layouts.
type Case = ([i64; 4], [Layout; 2]);

/// Loads of 16 bytes, of four elements and of one; partial tiles along m, n and k.
const CASES: [Case; 7] = [
    ([2, 64, 64, 64], [Layout::Inner, Layout::Outer]),
    ([1, 72, 40, 104], [Layout::Inner, Layout::Inner]),
    ([2, 40, 72, 72], [Layout::Outer, Layout::Outer]),
    ([2, 72, 76, 68], [Layout::Inner, Layout::Outer]),
    ([1, 37, 61, 131], [Layout::Outer, Layout::Gaps]),
    ([1, 45, 33, 70], [Layout::Gaps, Layout::Inner]),
    ([2, 68, 36, 128], [Layout::Outer, Layout::Inner]),
];

/// All cases, every second with k divided, and each with another choice of float32 operands; `run`
/// gets the number of ranges of k.
fn check_cases(seed: u64, dtype: DType, what: &str, cases: &[Case], run: impl Fn(&Call, &Problem, u32)) {
    let host = TestHost::new();
    let mut random = Random(seed);
    for (i, &(size, layouts)) in cases.iter().enumerate() {
        let [batch, m, n, k] = size;
        let split_k = [1, 3][i % 2];
        // Some cases are without special numbers: with an infinity, nearly every sum is NaN.
        let special = [0, 7, 4_000][i % 3];
        let a = Operand::new(&host, &mut random, dtype, [batch, m, k], layouts[0], special);
        let b = Operand::new(&host, &mut random, dtype, [batch, n, k], layouts[1], special);
        let which = WHICH[(i + seed as usize) % 3];
        check(&host, dtype, size, [&a, &b], which, &format!("{what} split-K {split_k}"), |call, problem| {
            run(call, problem, split_k);
        });
    }
    host.device.synchronize().expect("the device works");
}

#[test]
fn plain_tiles() {
    let host = TestHost::new();
    let limits = select::Limits::of(host.device.info());
    let software = host.device.info().kind == AdapterKind::Software;
    let odd = ["64x64x8/4x4/8x4/k2/x", "32x64x16/4x4/4x8/k1/x/s1"];
    let tiles = select::tiles()
        .filter(|t| limits.allow(t, 4) && (!software || t.thread_m * t.thread_n * t.k <= 64))
        .chain(odd.iter().map(|t| Tile::parse(t).expect("a tile")));
    for (seed, tile) in (0..).zip(tiles) {
        check_cases(seed, HALVES[seed as usize % 2], &tile.to_string(), &CASES, |call, problem, split_k| {
            problem.run_as(call, Choice { tile, split_k }).expect("it runs");
        });
    }
}

fn check_on_matrix_units(seed: u64, dtype: DType, tile: MatrixTile, cases: &[Case]) {
    let limits = select::Limits::of(TestHost::new().device.info());
    if tile.shared_bytes() > limits.shared_memory || tile.threads() > limits.invocations {
        return;
    }
    check_cases(seed, dtype, &tile.to_string(), cases, |call, problem, split_k| {
        problem.run_on_matrix_units(call, MatrixChoice { tile, split_k }).expect("it runs");
    });
}

#[test]
fn emulated_matrix_units() {
    let lanes = TestHost::new().device.info().capabilities.subgroup_size;
    let cases = [(DType::F16, [8, 16, 8], true), (DType::BF16, [8, 8, 16], false)];
    for (seed, (dtype, shape, transposes)) in (0..).zip(cases) {
        let [subgroup_m, subgroup_n, _] = shape;
        let (k, emulated, bytes) = (16, true, 2);
        let tile = MatrixTile { m: 16, n: 16, k, subgroup_m, subgroup_n, shape, lanes, emulated, bytes, transposes };
        check_on_matrix_units(seed, dtype, tile, &CASES);
    }
}

#[test]
fn the_adapter_s_matrix_units() {
    let info = TestHost::new().device.info().clone();
    // Software adapters take minutes to compile the larger tiles.
    let small = info.kind == AdapterKind::Software;
    let cases = if small { &CASES[1..5] } else { &CASES[..] };
    for dtype in HALVES {
        let units = matrix_unit_select::own(&info, dtype).into_iter();
        for (seed, (tile, _)) in (0..).zip(units.flat_map(matrix_unit_select::tiles)) {
            check_on_matrix_units(seed, dtype, tile, cases);
        }
    }
}

/// With the library's own choice of algorithm: few rows and many, any layout, any alignment.
#[test]
fn as_chosen() {
    let host = TestHost::new();
    let mut random = Random(3);
    for i in 0..18 {
        let dtype = HALVES[i % 2];
        let mut below = |most: u64| 1 + random.below(most) as i64;
        let few = i % 3 != 0;
        let size @ [batch, m, n, k] = [below(3), if few { below(4) } else { below(40) }, below(60), 4 * below(30)];
        let mut layout = || [Layout::Inner, Layout::Outer, Layout::Gaps][random.below(3) as usize];
        let layouts = [layout(), layout()];
        let a = Operand::new(&host, &mut random, dtype, [batch, m, k], layouts[0], 50);
        let b = Operand::new(&host, &mut random, dtype, [batch, n, k], layouts[1], 50);
        check(&host, dtype, size, [&a, &b], WHICH[i % 3], &format!("{layouts:?}"), |call, problem| {
            problem.run(call).expect("it runs");
        });
        host.clear();
    }
}

/// The operators: float32 operands are accepted under autocast, and only there.
#[test]
fn operators() {
    let host = TestHost::new();
    let mut random = Random(4);
    for dtype in HALVES {
        let matrix = |random: &mut Random, sizes: &[i64]| -> [View; 2] {
            let floats = host.of(DType::F32, sizes, &random.values(DType::F32, sizes.iter().product::<i64>() as usize));
            let halves = converted(&host, &floats, dtype);
            [floats, halves]
        };
        let mut new = |sizes: &[i64]| matrix(&mut random, sizes);
        let (a, b, bias) = (new(&[9, 20]), new(&[20, 7]), new(&[7]));
        let (batch, other, added) = (new(&[3, 9, 20]), new(&[3, 20, 7]), new(&[3, 9, 7]));
        let (vector, empty) = (new(&[20]), [new(&[0, 20]), new(&[9, 0]), new(&[0, 7])]);
        let one = || number(1.0);
        type Form<'t> = (&'t str, Box<dyn Fn(usize, usize) -> Vec<Arg<'static>> + 't>);
        let t = |pair: &[View; 2], i: usize| tensor(&pair[i]);
        let forms: Vec<Form<'_>> = vec![
            ("aten::mm", Box::new(|i, j| vec![t(&a, i), t(&b, j)])),
            ("aten::bmm", Box::new(|i, j| vec![t(&batch, i), t(&other, j)])),
            ("aten::addmm", Box::new(|i, j| vec![t(&bias, 1), t(&a, i), t(&b, j), one(), number(0.5)])),
            ("aten::baddbmm", Box::new(|i, j| vec![t(&added, 1), t(&batch, i), t(&other, j), number(2.0), one()])),
            ("aten::mv", Box::new(|i, j| vec![t(&a, i), t(&vector, j)])),
            ("aten::dot", Box::new(|i, j| vec![t(&vector, i), t(&vector, j)])),
            ("aten::mm", Box::new(|i, j| vec![t(&empty[0], i), t(&b, j)])),
            ("aten::mm", Box::new(|i, j| vec![t(&empty[1], i), t(&empty[2], j)])),
        ];
        let mut wanted = Vec::new();
        for (name, arguments) in &forms {
            let out = host.run(name, &arguments(1, 1)).expect("a product").remove(0);
            wanted.push((out.dtype, out.sizes.clone(), bits(&host, &out)));
            let refused = [arguments(0, 1), arguments(1, 0)].map(|args| host.run(name, &args));
            let [first, second] = refused.map(message);
            assert!(first.contains("dtype") || first.contains("scalar type"), "{name}: {first}");
            assert!(second.contains("dtype") || second.contains("scalar type"), "{name}: {second}");
        }
        let mut rounding = TestHost::new();
        rounding.product_dtype = Some(dtype);
        for ((name, arguments), wanted) in forms.iter().zip(&wanted) {
            for [i, j] in [[0, 1], [1, 0], [0, 0]] {
                let out = rounding.run(name, &arguments(i, j)).expect("a product").remove(0);
                assert_eq!(&(out.dtype, out.sizes.clone(), bits(&host, &out)), wanted, "{name} {dtype} {i} {j}");
            }
        }
        // An operand of any other dtype is an error as without autocast.
        let double = rounding.of(DType::F64, &[20, 7], &[0.0; 140]);
        let refused = message(rounding.run("aten::mm", &[t(&a, 0), tensor(&double)]));
        assert!(refused.contains("expected m1 and m2 to have the same dtype"), "{refused}");
    }
    host.clear();
}
