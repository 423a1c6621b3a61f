//! Times matrix products by the GPU's own clock, and checks them against float64.
//!
//! ```text
//! cargo run --release -p dml-aten --example gemm -- [--sizes 256,1024,64x10x4096] [--tiles all|table|matrix|T,T..]
//!     [--dtype f32] [--layout nn,nt,tn,tt] [--split-k 1,4] [--batch 1] [--device 0] [--runs 12] [--left-f32]
//! ```
//!
//! A size is `n` or `MxNxK`; a tile is written as `128x256x16/8x8/8x4`, with `/s1` for one stage,
//! `/k2` for two adjacent elements along k, `/x` for swizzled workgroup memory, `/g` for no
//! prefetch in the last step, `/u` for two k-tiles per iteration; on matrix units as
//! `m128x256x32/64x64`: a workgroup's tile and a subgroup's. `table` is the library's own choice,
//! `matrix` all of its tiles on matrix units. With `--left-f32` the left operand of a product of
//! f16 or bf16 is stored as float32: it is converted in a pass before the product, or on load; `*`
//! marks the library's choice.

#[path = "../crates/aten/tests/common/mod.rs"]
mod common;

use common::{Random, TestHost, Values, decode, encode};
use dml_aten::{Arg, Call};
use dml_compute::matmul::choice::{self, Algorithm, ChoiceKey};
use dml_compute::matmul::matrix_unit_select::{self, MatrixChoice};
use dml_compute::matmul::matrix_unit_tile::MatrixTile;
use dml_compute::matmul::rounding::Rounding;
use dml_compute::matmul::{Choice, EpilogueOperands, Output, Problem, Source, Tile, select};
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// Further tiles of `--tiles all`.
const VARIANTS: &[&str] = &[
    "128x256x16/8x8/8x4",
    "128x256x16/8x8/8x4/x",
    "128x256x16/8x8/8x4/k2",
    "128x256x16/8x8/8x4/k1",
    "128x256x16/8x8/8x4/k1/u",
    "128x256x16/8x8/8x4/k2/u",
    "128x256x16/8x8/8x4/k4/u",
    "128x256x16/8x8/8x4/x/u",
    "128x256x16/8x8/4x8",
    "128x256x16/8x8/4x8/x",
    "256x128x16/8x8/8x4",
    "256x128x16/8x8/8x4/x",
    "128x256x8/8x8/8x4",
    "128x128x8/8x8/8x4",
    "128x128x8/8x8/8x4/k1",
    "128x128x8/8x8/8x4/x",
    "128x128x16/8x8/8x4",
    "128x128x16/8x8/8x4/x",
    "128x128x16/8x8/4x8/x",
    "128x128x16/8x8/8x4/s1",
    "128x256x16/16x8/4x8",
    "128x128x16/16x8/4x8",
    "64x128x16/8x8/8x4",
    "64x128x16/8x8/8x4/x",
    "64x128x8/8x8/8x4",
    "128x64x16/8x8/8x4/x",
    "64x64x16/8x8/8x4",
    "64x64x16/8x4/8x4/x",
    "64x64x16/4x4/8x4",
    "64x64x32/4x4/8x4/x",
    "32x64x16/4x4/8x4",
    "32x32x32/4x4/8x4",
    "32x32x32/4x2/4x8/g",
];

struct Options {
    sizes: Vec<[i64; 3]>,
    tiles: String,
    dtype: DType,
    layouts: Vec<String>,
    split_k: Vec<u32>,
    batch: i64,
    device: usize,
    runs: usize,
    left_f32: bool,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        sizes: [256, 512, 1024, 2048, 4096].map(|n| [n; 3]).to_vec(),
        tiles: "table".into(),
        dtype: DType::F32,
        layouts: vec!["nn".into()],
        split_k: vec![1],
        batch: 1,
        device: 0,
        runs: 12,
        left_f32: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--left-f32" {
            o.left_f32 = true;
            continue;
        }
        let value = args.next().ok_or(format!("{name} wants a value"))?;
        let number = |s: &str| s.parse::<i64>().map_err(|e| format!("{name}: {s}: {e}"));
        match name.as_str() {
            "--sizes" => {
                o.sizes = value
                    .split(',')
                    .map(|s| match s.split('x').map(number).collect::<Result<Vec<_>, _>>()?[..] {
                        [n] => Ok([n; 3]),
                        [m, n, k] => Ok([m, n, k]),
                        _ => Err(format!("{s} is no size")),
                    })
                    .collect::<Result<_, String>>()?;
            }
            "--tiles" => o.tiles = value,
            "--dtype" => {
                let names = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"];
                let code = names.iter().position(|n| *n == value).ok_or(format!("{value} is no dtype"))?;
                o.dtype = DType::from_code(code as u8).ok_or("no dtype")?;
            }
            "--layout" => o.layouts = value.split(',').map(str::to_owned).collect(),
            "--split-k" => {
                o.split_k = value.split(',').map(|s| number(s).map(|n| n as u32)).collect::<Result<_, _>>()?
            }
            "--batch" => o.batch = number(&value)?,
            "--device" => o.device = number(&value)? as usize,
            "--runs" => o.runs = number(&value)?.max(1) as usize,
            _ => return Err(format!("{name} is no option")),
        }
    }
    if o.left_f32 && !matches!(o.dtype, DType::F16 | DType::BF16) {
        return Err("--left-f32 wants a dtype of 16 bits".into());
    }
    Ok(o)
}

/// Strides of a `rows x columns` matrix, row-major, or column-major if `transposed`.
fn strides(rows: i64, columns: i64, transposed: bool) -> [i64; 2] {
    if transposed { [1, rows] } else { [columns, 1] }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let o = options()?;
    // SAFETY: this is the only thread.
    unsafe { std::env::set_var("DML_TEST_DEVICE", o.device.to_string()) };
    let host = TestHost::new();
    println!("{} ({})", host.device.info().name, host.device.info().driver_info);
    println!(
        "{:>6} {:>18} {:>3} {:>32} {:>5} {:>10} {:>8} {:>9}",
        "dtype", "m x n x k", "", "tile", "split", "us", "TFLOP/s", "error"
    );
    for &[m, n, k] in &o.sizes {
        let mut random = Random(m as u64 * 31 + n as u64 * 7 + k as u64);
        let bytes = |random: &mut Random, count: i64| -> Vec<u8> {
            (0..count).flat_map(|_| encode(o.dtype, scale(o.dtype, random.signed_unit()))).collect()
        };
        let (a, b) = (bytes(&mut random, o.batch * m * k), bytes(&mut random, o.batch * k * n));
        let (ta, tb) = (host.tensor(o.dtype, &[o.batch, m * k], &a), host.tensor(o.dtype, &[o.batch, k * n], &b));
        let out =
            host.tensor(o.dtype, &[o.batch, m, n], &vec![0; (o.batch * m * n) as usize * o.dtype.bytes() as usize]);
        for layout in &o.layouts {
            let (sa, sb) = (strides(m, k, layout.starts_with('t')), strides(k, n, layout.ends_with('t')));
            let problem = Problem {
                size: [o.batch, m, n, k],
                a: Source::strided(&ta, [m, k], sa, m * k),
                b: Source::strided(&tb, [n, k], [sb[1], sb[0]], k * n),
                finish: EpilogueOperands {
                    out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
                    alpha: Scalar::Int(1),
                    bias: None,
                    then: None,
                },
            };
            let print = |form: &str, algorithm, run: &dyn Fn(&Call) -> dml_aten::Result<()>| {
                let (tile, split_k) = named(algorithm);
                let row = format!("{:>6} {m:>5}x{n:>5}x{k:>6} {layout:>3} {tile:>32}", o.dtype);
                match measure(&host, &o, &out, run) {
                    Ok(us) => {
                        let error = check(&host, &o, [m, n, k], [&a, &b], [sa, sb], &out);
                        let rate = 2.0 * (o.batch * m * n) as f64 * k as f64 / us * 1e-6;
                        let row = format!("{row} {split_k:>5} {us:>10.1} {rate:>8.3} {error:>9.2e} {form}");
                        println!("{}", row.trim_end());
                    }
                    Err(e) => println!("{row}: {e}"),
                }
            };
            for algorithm in choices(&o, &host, problem.size, layout, None)? {
                print("", algorithm, &|call| Ok(problem.run_in(call, algorithm)?));
            }
            if !o.left_f32 {
                continue;
            }
            let floats: Vec<f64> = a.chunks(2).map(|bytes| decode(o.dtype, bytes)).collect();
            let floats = host.of(DType::F32, &[o.batch, m * k], &floats);
            let copy = dml_aten::operators().iter().find(|operator| operator.name == "aten::_copy_from");
            let copy = copy.ok_or("there is no copy")?;
            let operands = [Arg::Tensor(floats.clone()), Arg::Tensor(ta.clone()), Arg::Scalar(Scalar::Bool(false))];
            let cast = || {
                let mut call = Call { args: &operands, ..call(copy.name, &host) };
                (copy.run)(&mut call)
            };
            let on_load =
                Problem { a: Source::strided(&floats, [m, k], sa, m * k).with_rounding(o.dtype), ..problem.clone() };
            let own = host.device.info().capabilities.converts_halves();
            let rounding = Rounding { operands: [Some(o.dtype), None], own };
            let asked = choice_key(&o, &host, problem.size, layout, Some(rounding));
            let is_chosen = choice::rounded_on_load(asked) == rounding.operands;
            let mark = |chosen: bool| if chosen { "*" } else { "" };
            for algorithm in choices(&o, &host, problem.size, layout, None)? {
                print(&format!("cast before{}", mark(!is_chosen)), algorithm, &|call| {
                    cast()?;
                    Ok(problem.run_in(call, algorithm)?)
                });
            }
            for algorithm in choices(&o, &host, problem.size, layout, Some(rounding))? {
                print(&format!("on load{}", mark(is_chosen)), algorithm, &|call| Ok(on_load.run_in(call, algorithm)?));
            }
        }
        host.device.synchronize()?;
        host.clear();
    }
    Ok(())
}

/// A tile's name and the number of parts of k.
fn named(algorithm: Algorithm) -> (String, u32) {
    match algorithm {
        Algorithm::Plain(choice) => (choice.tile.to_string(), choice.split_k),
        Algorithm::TwoLaunches(waves) => (format!("{} rows {}", waves.rows, waves.first), waves.rest.split_k),
        Algorithm::Matrix(choice) => (format!("m{}", choice.tile), choice.split_k),
        Algorithm::MatrixTwoLaunches(waves) => (format!("{} rows m{}", waves.rows, waves.first), waves.rest.split_k),
        Algorithm::SplitFloat(choice) => (format!("halves m{}", choice.tile), 1),
        Algorithm::RoundedFloat(choice) => (format!("rounded m{}", choice.tile), choice.split_k),
    }
}

/// Integers in a wider range than 0 to 1.
fn scale(dtype: DType, x: f64) -> f64 {
    if dtype.is_float() { x } else { (x * 8.0).floor() }
}

fn choice_key(o: &Options, host: &TestHost, size: [i64; 4], layout: &str, rounding: Option<Rounding>) -> ChoiceKey {
    ChoiceKey {
        limits: select::Limits::of(host.device.info()),
        matrix_units: matrix_unit_select::candidates(host.device.info(), o.dtype).next(),
        form: None,
        size,
        bytes: o.dtype.compute().bytes(),
        prefers_long_steps: true,
        b_along_k: layout.ends_with('t'),
        by_rows: true,
        rounding: rounding.unwrap_or(Rounding::NONE),
    }
}

fn choices(
    o: &Options,
    host: &TestHost,
    size: [i64; 4],
    layout: &str,
    rounding: Option<Rounding>,
) -> Result<Vec<Algorithm>, String> {
    let choice_key = choice_key(o, host, size, layout, rounding);
    let ChoiceKey { limits, matrix_units, bytes, .. } = choice_key;
    if o.tiles == "table" {
        return Ok(vec![choice::choose(choice_key)]);
    }
    let split = |algorithm: &dyn Fn(u32) -> Algorithm| -> Vec<Algorithm> {
        o.split_k.iter().map(|&parts| algorithm(parts)).collect()
    };
    let on_units = |tile| split(&|split_k| Algorithm::Matrix(MatrixChoice { tile, split_k }));
    let plain = |tile| split(&|split_k| Algorithm::Plain(Choice { tile, split_k }));
    if o.tiles == "matrix" {
        return Ok(matrix_units
            .into_iter()
            .flat_map(matrix_unit_select::tiles)
            .flat_map(|(tile, _)| on_units(tile))
            .collect());
    }
    let tiles: Vec<Tile> = if o.tiles == "all" {
        let mut all: Vec<Tile> = VARIANTS.iter().filter_map(|t| Tile::parse(t)).collect();
        all.extend(
            select::tiles().filter(|t| !VARIANTS.iter().any(|v| Tile::parse(v) == Some(*t))).collect::<Vec<_>>(),
        );
        all.into_iter().filter(|t| limits.allow(t, bytes)).collect()
    } else {
        let mut algorithms = Vec::new();
        for text in o.tiles.split(',') {
            let wrong = || format!("{text} is no tile, or the adapter has no matrix units for it");
            algorithms.extend(match text.strip_prefix('m') {
                Some(text) => on_units(matrix_units.and_then(|u| MatrixTile::parse(text, u)).ok_or_else(wrong)?),
                None => plain(Tile::parse(text).ok_or_else(wrong)?),
            });
        }
        return Ok(algorithms);
    };
    Ok(tiles.into_iter().flat_map(plain).collect())
}

/// Warm-up time of a product before it is timed.
const WARM_UP: std::time::Duration = std::time::Duration::from_millis(150);

fn call<'h>(name: &'static str, host: &'h TestHost) -> Call<'h> {
    Call::named(name, dml_engine::FaultKind::Index, &[], &host.device, host)
}

/// Microseconds on the device, the median of the runs.
fn measure(
    host: &TestHost,
    o: &Options,
    out: &View,
    run: &dyn Fn(&Call) -> dml_aten::Result<()>,
) -> dml_aten::Result<f64> {
    let call = call("gemm", host);
    let device = &host.device;
    device.upload(out.data, &vec![0; (out.numel() as u64 * out.element_size()) as usize])?;
    // An idle GPU lowers its clocks and takes a while to raise them again: warm it up for a fixed
    // time, then run without a pause.
    let warm = std::time::Instant::now();
    // Partial sums of a split k belong to the operator itself.
    let kept = host.count();
    while warm.elapsed() < WARM_UP {
        run(&call)?;
        host.keep(kept);
        device.synchronize()?;
    }
    let mut events = vec![device.record_event(true)?];
    for _ in 0..o.runs {
        run(&call)?;
        host.keep(kept);
        events.push(device.record_event(true)?);
    }
    device.synchronize()?;
    let mut times = Vec::new();
    for pair in events.windows(2) {
        times.push(pair[0].elapsed_ms(&pair[1])? * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The largest error of sampled outputs against float64, relative to the square root of k.
fn check(host: &TestHost, o: &Options, size: [i64; 3], ab: [&[u8]; 2], strides: [[i64; 2]; 2], out: &View) -> f64 {
    const SAMPLES: u64 = 8192;
    let [m, n, k] = size;
    let width = o.dtype.bytes() as usize;
    let mut all = vec![0; (out.numel() as u64 * out.element_size()) as usize];
    if host.device.download(out.data, &mut all).is_err() {
        return f64::NAN;
    }
    let at = |bytes: &[u8], i: i64| decode(o.dtype, &bytes[i as usize * width..][..width]);
    let samples = SAMPLES.min((4e9 / k as f64) as u64);
    let mut random = Random(42);
    let mut worst = 0f64;
    for _ in 0..samples {
        let mut below = |n: i64| random.below(n as u64) as i64;
        let (z, i, j) = (below(o.batch), below(m), below(n));
        let sum: f64 = (0..k)
            .map(|l| {
                let x = at(ab[0], z * m * k + i * strides[0][0] + l * strides[0][1]);
                x * at(ab[1], z * k * n + l * strides[1][0] + j * strides[1][1])
            })
            .sum();
        let error = (at(&all, (z * m + i) * n + j) - sum).abs();
        worst = if error.is_nan() { f64::NAN } else { worst.max(error) };
    }
    worst / (k as f64).sqrt()
}
