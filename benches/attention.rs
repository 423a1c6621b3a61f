//! Times attention on matrix units by the GPU's own clock, and checks it against float64.
//!
//! ```text
//! cargo run --release -p dml-aten --example attention -- [--sizes 1x16x4096x128,..] [--tiles table|all|T,T..]
//!     [--roles forward,query,key,value,keyvalue] [--dtype bf16] [--causal 1] [--device 0] [--runs 12]
//! ```
//!
//! A size is batch, heads, sequence length and head dimension. A tile is written as `4x16x64`:
//! subgroups, rows per subgroup, and columns per step, with the suffix `l` for lazy rescaling of
//! the sums (forward) and `s` for rows in workgroup memory. `table` tries all tiles that the
//! library has for the size, its first choice first; `all` many more. Rates count the matrix
//! products of a role: 2 for forward and for the gradient of values, 3 for the gradients of queries
//! and of keys, 4 for the gradients of keys and values together.

#[path = "../crates/aten/tests/common/mod.rs"]
mod common;

use common::{Random, TestHost, Values, decode, encode};
use dml_aten::Call;
use dml_compute::View;
use dml_compute::attention::matrix_units::{MatrixLayouts, Problem, Role, Tile, tiles};
use dml_compute::matmul::matrix_unit_select;
use dml_kernel::DType;

/// The tiles of `--tiles all`.
const VARIANTS: &[&str] = &[
    "4x16x16",
    "4x16x32",
    "4x16x32l",
    "4x16x64",
    "4x16x64l",
    "4x16x64s",
    "4x16x64ls",
    "4x16x128",
    "8x16x128",
    "4x32x32",
    "4x32x32s",
    "4x32x64",
    "4x32x64l",
    "2x32x64",
    "8x16x32",
    "8x16x32s",
    "8x16x64",
    "8x16x64l",
    "8x16x64s",
    "8x32x32",
    "8x32x64",
];

struct Options {
    sizes: Vec<[i64; 4]>,
    tiles: String,
    roles: Vec<Role>,
    dtype: DType,
    causal: bool,
    device: usize,
    runs: usize,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        sizes: vec![[4, 16, 512, 64], [1, 16, 4096, 64], [4, 16, 512, 128], [1, 16, 4096, 128]],
        tiles: "table".into(),
        roles: vec![Role::Forward, Role::Query, Role::Key, Role::Value, Role::KeyValue],
        dtype: DType::BF16,
        causal: true,
        device: 0,
        runs: 12,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(format!("{name} wants a value"))?;
        let number = |s: &str| s.parse::<i64>().map_err(|e| format!("{name}: {s}: {e}"));
        match name.as_str() {
            "--sizes" => {
                let size = |s: &str| {
                    let numbers = s.split('x').map(number).collect::<Result<Vec<_>, _>>()?;
                    <[i64; 4]>::try_from(numbers).map_err(|_| format!("{s} is no size"))
                };
                o.sizes = value.split(',').map(size).collect::<Result<_, String>>()?;
            }
            "--tiles" => o.tiles = value,
            "--roles" => {
                let role = |name: &str| match name {
                    "forward" => Ok(Role::Forward),
                    "query" => Ok(Role::Query),
                    "key" => Ok(Role::Key),
                    "value" => Ok(Role::Value),
                    "keyvalue" => Ok(Role::KeyValue),
                    _ => Err(format!("{name} is no role")),
                };
                o.roles = value.split(',').map(role).collect::<Result<_, String>>()?;
            }
            "--dtype" => {
                o.dtype = match value.as_str() {
                    "f16" => DType::F16,
                    "bf16" => DType::BF16,
                    _ => return Err(format!("{value} is neither f16 nor bf16")),
                }
            }
            "--causal" => o.causal = number(&value)? != 0,
            "--device" => o.device = number(&value)? as usize,
            "--runs" => o.runs = number(&value)?.max(1) as usize,
            _ => return Err(format!("{name} is no option")),
        }
    }
    Ok(o)
}

/// The tensors of one size, on the device and as f64.
struct Data {
    size: [i64; 4],
    /// Queries, keys, values, and the result's gradient.
    given: [View; 4],
    numbers: [Vec<f64>; 4],
    outs: [View; 2],
    logs: View,
    deltas: View,
}

impl Data {
    fn new(host: &TestHost, o: &Options, size: [i64; 4]) -> Data {
        let [batch, heads, length, width] = size;
        let mut random = Random((length * width) as u64);
        let count = size.iter().product::<i64>();
        let bytes: [Vec<u8>; 4] =
            std::array::from_fn(|_| (0..count).flat_map(|_| encode(o.dtype, random.signed_unit() * 1.7)).collect());
        let numbers = bytes.each_ref().map(|b| b.chunks(2).map(|x| decode(o.dtype, x)).collect());
        let given = bytes.each_ref().map(|b| host.tensor(o.dtype, &size, b));
        let empty = || host.tensor(o.dtype, &size, &vec![0; count as usize * 2]);
        let rows = [batch, heads, length];
        let row = || host.tensor(DType::F32, &rows, &vec![0; (batch * heads * length) as usize * 4]);
        Data { size, given, numbers, outs: [empty(), empty()], logs: row(), deltas: row() }
    }

    fn problem(&self, o: &Options, role: Role) -> Problem<'_> {
        let [query, key, value, gradient] = &self.given;
        Problem {
            role,
            outs: [&self.outs[0], &self.outs[1]],
            inputs: [query, key, value],
            bias: None,
            logs: &self.logs,
            gradient: (role != Role::Forward).then_some([gradient, &self.deltas]),
            causal: o.causal,
            scale: self.scale(),
            dropout: None,
        }
    }

    fn scale(&self) -> f64 {
        1.0 / (self.size[3] as f64).sqrt()
    }

    /// Computes the inner products of each row of the result with its gradient; needs a forward
    /// result.
    fn fill_deltas(&self, host: &TestHost) {
        let width = self.size[3] as usize;
        let out = host.read(&self.outs[0]);
        let deltas = out.chunks(width).zip(self.numbers[3].chunks(width));
        let bytes: Vec<u8> = deltas.flat_map(|(x, y)| (dot(x, y) as f32).to_le_bytes()).collect();
        host.device.upload(self.deltas.data, &bytes).expect("the device works");
    }

    /// Row `i` of a head of the given tensor with index `which`.
    fn row(&self, which: usize, head: usize, i: usize) -> &[f64] {
        let (length, width) = (self.size[2] as usize, self.size[3] as usize);
        &self.numbers[which][(head * length + i) * width..][..width]
    }

    /// The largest error in a sample of rows, relative to their largest value.
    fn error(&self, host: &TestHost, o: &Options, role: Role) -> f64 {
        let [batch, heads, length, width] = self.size.map(|n| n as usize);
        let found = self.outs.each_ref().map(|out| host.read(out));
        let (logs, deltas) = (host.read(&self.logs), host.read(&self.deltas));
        let sees = |query: usize, key: usize| !o.causal || key <= query;
        let mut random = Random(3);
        let (mut worst, mut largest) = (0f64, 0f64);
        for _ in 0..24 {
            let head = random.below((batch * heads) as u64) as usize;
            let i = random.below(length as u64) as usize;
            let at = |j: usize| head * length + j;
            let mut sums = [vec![0.0; width], vec![0.0; width]];
            let mut total = 0.0;
            for j in 0..length {
                let (query, key) = if role.transposed() { (j, i) } else { (i, j) };
                if !sees(query, key) {
                    continue;
                }
                let score = self.scale() * dot(self.row(0, head, query), self.row(1, head, key));
                // The forward pass may subtract anything from the scores.
                let weight = (score - if role == Role::Forward { 0.0 } else { logs[at(query)] }).exp();
                total += weight;
                let slope = dot(self.row(3, head, query), self.row(2, head, key)) - deltas[at(query)];
                let terms = match role {
                    Role::Forward => vec![(weight, self.row(2, head, key))],
                    Role::Query => vec![(weight * slope * self.scale(), self.row(1, head, key))],
                    Role::Key => vec![(weight * slope * self.scale(), self.row(0, head, query))],
                    Role::Value => vec![(weight, self.row(3, head, query))],
                    Role::KeyValue => vec![
                        (weight * slope * self.scale(), self.row(0, head, query)),
                        (weight, self.row(3, head, query)),
                    ],
                };
                for (sum, (factor, row)) in sums.iter_mut().zip(terms) {
                    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
                }
            }
            let results = if role == Role::KeyValue { 2 } else { 1 };
            for (sums, found) in sums.iter().zip(&found).take(results) {
                for (sum, x) in sums.iter().zip(&found[at(i) * width..][..width]) {
                    let sum = if role == Role::Forward { sum / total } else { *sum };
                    let error = (sum - x).abs();
                    worst = if error.is_nan() { f64::NAN } else { worst.max(error) };
                    largest = largest.max(sum.abs());
                }
            }
        }
        worst / largest
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let o = options()?;
    // SAFETY: this is the only thread.
    unsafe { std::env::set_var("DML_TEST_DEVICE", o.device.to_string()) };
    let host = TestHost::new();
    let info = host.device.info();
    println!("{} ({})", info.name, info.driver_info);
    let call = Call::named("attention", dml_engine::FaultKind::Index, &[], &host.device, &host);
    let units =
        matrix_unit_select::candidates(info, o.dtype).next().ok_or("the adapter has no matrix units for the dtype")?;
    let layouts = MatrixLayouts::of(&call, units, o.dtype)?.ok_or("it cannot be told who holds what of a matrix")?;
    println!("weights stay in registers: {}", layouts.accumulator_is_operand());
    println!("{layouts:?}");
    println!("{:>20} {:>8} {:>10} {:>10} {:>9} {:>9}", "size", "role", "tile", "us", "TFLOP/s", "error");
    for &size in &o.sizes {
        let data = Data::new(&host, &o, size);
        let [batch, heads, length, width] = size;
        let name = format!("{batch}x{heads}x{length}x{width}");
        // The gradients need the forward result.
        if !data.problem(&o, Role::Forward).run(&call)? {
            println!("{name:>20}: not on matrix units");
            continue;
        }
        data.fill_deltas(&host);
        for &role in &o.roles {
            let problem = data.problem(&o, role);
            let all: Vec<Tile> = if o.tiles == "table" {
                tiles(role, width as u32, o.causal, units.small).to_vec()
            } else if o.tiles == "all" {
                let lazy = |tile: &Tile| tile.lazy && role != Role::Forward;
                VARIANTS.iter().filter_map(|text| Tile::parse(text)).filter(|tile| !lazy(tile)).collect()
            } else {
                let parse = |text| Tile::parse(text).ok_or_else(|| format!("{text} is no tile"));
                o.tiles.split(',').map(parse).collect::<Result<_, _>>()?
            };
            for tile in all {
                let tried =
                    if tile.fits(layouts.shape) { measure(&call, &o, &problem, layouts, tile) } else { Ok(None) };
                let us = match tried {
                    Ok(Some(us)) => us,
                    Ok(None) => {
                        println!("{name:>20} {:>8} {:>10} does not fit", format!("{role:?}"), tile.to_string());
                        continue;
                    }
                    Err(e) => {
                        println!("{name:>20} {:>8} {:>10}: {e}", format!("{role:?}"), tile.to_string());
                        continue;
                    }
                };
                let products = match role {
                    Role::Forward | Role::Value => 2.0,
                    Role::Query | Role::Key => 3.0,
                    Role::KeyValue => 4.0,
                };
                let all = 2.0 * products * (batch * heads * length * length * width) as f64;
                let rate = if o.causal { all / 2.0 } else { all } / us * 1e-6;
                let error = data.error(&host, &o, role);
                println!(
                    "{name:>20} {:>8} {:>10} {us:>10.1} {rate:>10.3} {error:>9.2e}",
                    format!("{role:?}"),
                    tile.to_string()
                );
            }
        }
        host.device.synchronize()?;
        drop(data);
        host.clear();
    }
    Ok(())
}

/// Warm-up time of a kernel before it is timed.
const WARM_UP: std::time::Duration = std::time::Duration::from_millis(300);

/// Microseconds on the device, the median of the runs; `None` if the tile does not fit.
fn measure(
    call: &Call,
    o: &Options,
    problem: &Problem,
    layouts: MatrixLayouts,
    tile: Tile,
) -> dml_aten::Result<Option<f64>> {
    let device = call.device;
    let warm = std::time::Instant::now();
    while warm.elapsed() < WARM_UP {
        if !problem.run_in(call, layouts, tile)? {
            return Ok(None);
        }
        device.synchronize()?;
    }
    let mut events = vec![device.record_event(true)?];
    for _ in 0..o.runs {
        problem.run_in(call, layouts, tile)?;
        events.push(device.record_event(true)?);
    }
    device.synchronize()?;
    let mut times = Vec::new();
    for pair in events.windows(2) {
        times.push(pair[0].elapsed_ms(&pair[1])? * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(Some(times[times.len() / 2]))
}
