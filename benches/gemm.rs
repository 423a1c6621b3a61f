//! Times products of matrices by the GPU's own clock, and checks them against float64.
//!
//! ```text
//! cargo run --release -p dml-aten --example gemm -- [--sizes 256,1024,64x10x4096] [--tiles all|table|matrix|T,T..]
//!     [--dtype f32] [--layout nn,nt,tn,tt] [--split-k 1,4] [--batch 1] [--device 0] [--runs 12] [--left-f32]
//! ```
//!
//! A size is `n` or `MxNxK`; a tile is written as `128x256x16/8x8/8x4`, with `/s1` for one stage,
//! `/k2` for two neighbours along k, `/x` for swizzled shared memory, `/g` for no prefetch in the
//! last step, `/u` for two k-tiles a turn; on matrix units as `m128x256x32/64x64`, a workgroup's
//! part and a subgroup's. `table` is what the library itself chooses, `matrix` all of its tiles on
//! matrix units. With `--left-f32` the first operand of a product of f16 or bf16 lies in memory as
//! float32: it is converted in a pass before the product, or on load; `*` marks what the library
//! chooses.

#[path = "../crates/aten/tests/common/mod.rs"]
mod common;

use common::{Random, TestHost, Values, decode, encode};
use dml_aten::{Arg, Call};
use dml_compute::matmul::choice::{self, Question, Way};
use dml_compute::matmul::matrix_select::{self, MatrixChoice};
use dml_compute::matmul::matrix_tile::MatrixTile;
use dml_compute::matmul::rounding::Rounding;
use dml_compute::matmul::{Choice, Finish, Output, Problem, Source, Tile, select};
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// What `--tiles all` tries beside the table.
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

/// A `rows x columns` matrix with its strides; `t` means that it lies transposed in memory.
fn strides(rows: i64, columns: i64, transposed: bool) -> [i64; 2] {
    if transposed { [1, rows] } else { [columns, 1] }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let o = options()?;
    // SAFETY: no other thread runs yet.
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
                finish: Finish {
                    out: Output { memory: (&out).into(), strides: [m * n, n, 1], split: None },
                    alpha: Scalar::Int(1),
                    bias: None,
                    activation: None,
                },
            };
            let print = |form: &str, way, run: &dyn Fn(&Call) -> dml_aten::Result<()>| {
                let (tile, split_k) = named(way);
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
            for way in choices(&o, &host, problem.size, layout, None)? {
                print("", way, &|call| Ok(problem.run_in(call, way)?));
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
                Problem { a: Source::strided(&floats, [m, k], sa, m * k).rounded(o.dtype), ..problem.clone() };
            let own = host.device.info().capabilities.converts_halves();
            let rounding = Rounding { operands: [Some(o.dtype), None], own };
            let asked = question(&o, &host, problem.size, layout, Some(rounding));
            let is_chosen = choice::rounded_on_load(asked) == rounding.operands;
            let mark = |chosen: bool| if chosen { "*" } else { "" };
            for way in choices(&o, &host, problem.size, layout, None)? {
                print(&format!("cast before{}", mark(!is_chosen)), way, &|call| {
                    cast()?;
                    Ok(problem.run_in(call, way)?)
                });
            }
            for way in choices(&o, &host, problem.size, layout, Some(rounding))? {
                print(&format!("on load{}", mark(is_chosen)), way, &|call| Ok(on_load.run_in(call, way)?));
            }
        }
        host.device.synchronize()?;
        host.clear();
    }
    Ok(())
}

/// A tile's name and the parts of k.
fn named(way: Way) -> (String, u32) {
    match way {
        Way::Plain(choice) => (choice.tile.to_string(), choice.split_k),
        Way::Waves(waves) => (format!("{} rows {}", waves.rows, waves.first), waves.rest.split_k),
        Way::Matrix(choice) => (format!("m{}", choice.tile), choice.split_k),
        Way::MatrixWaves(waves) => (format!("{} rows m{}", waves.rows, waves.first), waves.rest.split_k),
        Way::Split(choice) => (format!("halves m{}", choice.tile), 1),
        Way::Rounded(choice) => (format!("rounded m{}", choice.tile), choice.split_k),
    }
}

/// Integers get more than 0 and 1.
fn scale(dtype: DType, x: f64) -> f64 {
    if dtype.is_float() { x } else { (x * 8.0).floor() }
}

fn question(o: &Options, host: &TestHost, size: [i64; 4], layout: &str, rounding: Option<Rounding>) -> Question {
    Question {
        limits: select::Limits::of(host.device.info()),
        units: matrix_select::candidates(host.device.info(), o.dtype).next(),
        form: None,
        size,
        bytes: o.dtype.compute().bytes(),
        long_steps: true,
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
) -> Result<Vec<Way>, String> {
    let question = question(o, host, size, layout, rounding);
    let Question { limits, units, bytes, .. } = question;
    if o.tiles == "table" {
        return Ok(vec![choice::choose(question)]);
    }
    let split = |way: &dyn Fn(u32) -> Way| -> Vec<Way> { o.split_k.iter().map(|&parts| way(parts)).collect() };
    let on_units = |tile| split(&|split_k| Way::Matrix(MatrixChoice { tile, split_k }));
    let plain = |tile| split(&|split_k| Way::Plain(Choice { tile, split_k }));
    if o.tiles == "matrix" {
        return Ok(units.into_iter().flat_map(matrix_select::tiles).flat_map(|(tile, _)| on_units(tile)).collect());
    }
    let tiles: Vec<Tile> = if o.tiles == "all" {
        let mut all: Vec<Tile> = VARIANTS.iter().filter_map(|t| Tile::parse(t)).collect();
        all.extend(
            select::tiles().filter(|t| !VARIANTS.iter().any(|v| Tile::parse(v) == Some(*t))).collect::<Vec<_>>(),
        );
        all.into_iter().filter(|t| limits.allow(t, bytes)).collect()
    } else {
        let mut ways = Vec::new();
        for text in o.tiles.split(',') {
            let wrong = || format!("{text} is no tile, or the adapter has no matrix units for it");
            ways.extend(match text.strip_prefix('m') {
                Some(text) => on_units(units.and_then(|u| MatrixTile::parse(text, u)).ok_or_else(wrong)?),
                None => plain(Tile::parse(text).ok_or_else(wrong)?),
            });
        }
        return Ok(ways);
    };
    Ok(tiles.into_iter().flat_map(plain).collect())
}

/// How long a product runs before it is timed.
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
    // An idle GPU clocks down and takes a while to come back: warm it up for a fixed time, then
    // leave it no pause.
    let warm = std::time::Instant::now();
    // Sums of parts of k are the operator's own.
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

/// Largest error of sampled outputs against float64, relative to the root of k.
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
