//! Measures the worst error of every function of the math library and writes the table.
//!
//! `cargo run --release -p dml-kernel --example numerics -- [FILE] [SAMPLES]`; FILE is docs/numerics.md and SAMPLES
//! (per f32 function) 50,000,000 when left out. f64 is compared with a multiprecision library, so it takes fewer.

#[path = "../tests/common/reference_double.rs"]
mod double;
#[path = "../tests/common/reference.rs"]
mod single;
#[path = "../tests/common/reference_special.rs"]
mod special;

use dml_kernel::ScalarType;
use std::fmt::Write;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Inputs of one task, so that the samples of a function need little memory.
const BATCH: usize = 1 << 20;
/// f32 samples for each f64 sample.
const SINGLE_PER_DOUBLE: usize = 1000;

const HEADER: &str = "\
# Numerics

Vulkan promises correct rounding for addition, subtraction and multiplication only, so a driver's own division, `exp` or
`sin` may differ from another's. torch-dml uses none of them: its functions are built from those three operations and
integer arithmetic (`crates/kernel/src/math`), and give the same bits on every adapter.

Subnormal numbers (float32 below 1.2e-38, float64 below 2.2e-308; those of float16 are ordinary float32 numbers inside) are
treated in two ways:

- The functions of the tables take and give them exactly, whatever the adapter does with them in its own arithmetic:
  division, roots, remainders and conversions to the last bit, the others within their bounds, with at most half a unit of
  4.9e-324 (1.4e-45) more. So do `abs`, `neg`, `sign`, `copysign`, `hypot`, and all that only moves numbers. So do
  comparisons and what chooses by them (minimum and maximum, extrema, `clamp`, `relu` and its like, sorting), which compare
  floats as integers: NVIDIA's driver takes subnormals for zeros when it compares, though it keeps them in sums and products.
- Addition, subtraction, multiplication and `floor` and its like are the adapter's own. The engine asks for
  subnormals to be kept (`DenormPreserve`) where the adapter offers it for all its float types
  (`torch.dml.get_device_properties().subnormals` says whether): then they are. Elsewhere Vulkan lets the adapter flush them
  to zero, and functions that are composed of these (`silu`, sums, matrix products) inherit it: what they are off by is below
  the smallest normal number, times what follows. Where infinities or NaN would come of it, as in `addcdiv`, `xlogy` or
  `logit`, the products inside are the table's `mul`, which is as exact as division; PyTorch's own compositions, most gradients
  among them, have no such. Of the adapters that were tested Mesa 22.3's lavapipe offers it; the H200 does not, and keeps them
  in addition and multiplication all the same; Mesa 26.1's lavapipe flushes them in float32 and float64.

The interpreter has both ways (`interpret::Subnormals`), and a test holds that no function depends on which.

The table is measured by `cargo run --release -p xtask -- numerics`: error in units in the last place (ulp) of the
correctly rounded result, worst input found, over edge cases and seeded random inputs, against f64 for f32 and against
256-bit arithmetic for f64. 0.5 is correct rounding. `Bound` is what the tests hold; the promise is 2 ulp, and 1 ulp for
division, square root, `exp` and `log`. `Instructions` counts arithmetic of every branch.

| Function | dtype | Worst ulp | Bound | At | Samples | Instructions |
| --- | --- | ---: | ---: | --- | ---: | ---: |
";

const SPECIAL_HEADER: &str = "
Special functions (`math::special`) are compared with values of a multiprecision library, and in f32 at random points
between those with the f64 functions. Where a Bessel or Airy function oscillates, its error is counted in ulp of 0.25,
about its amplitude, where the value is smaller; its phase has 48 bits in f32 and 106 in f64, so that beyond some -1e6 in f32
Airy's digits become fewer. Left of zero `lgamma` and `digamma` have zeros between the poles: from -10 (`lgamma` in f64: -18)
to 0 their errors are counted in ulp of 1/64 where the value is smaller, further left `digamma`'s in ulp of 4. Of `zeta` the
table holds positive arguments; left of zero its errors are those of the terms that cancel. `igamma` and `igammac` lose digits
far in their tails, in proportion to the exponent there.

| Function | dtype | Worst ulp | Bound | At | Samples | Instructions |
| --- | --- | ---: | ---: | --- | ---: | ---: |
";

struct Row {
    name: &'static str,
    dtype: &'static str,
    ulp: f64,
    bound: f64,
    at: String,
    samples: usize,
    instructions: usize,
}

fn single(case: &single::Case, samples: usize) -> Row {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicU64::new(0);
    let batches = samples.div_ceil(BATCH) as u64;
    let worker = || {
        let mut found: Vec<single::Worst> = Vec::new();
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return found;
            }
            found.push(case.worst(BATCH, 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(batch + 1)));
        }
    };
    let found: Vec<single::Worst> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap_or_default()).collect()
    });
    let samples = found.iter().map(|w| w.samples).sum();
    // Equal errors are told apart by the input, so that the table does not depend on the order of the threads.
    let key = |w: &single::Worst| (w.ulp, w.at.first().map(|x| x.to_bits()));
    let worst = found.into_iter().reduce(|a, b| if key(&b) > key(&a) { b } else { a });
    let (ulp, at) = worst.map_or((0.0, Vec::new()), |w| (w.ulp, w.at));
    let at: Vec<String> = at.iter().map(|x| format!("{x:e}")).collect();
    let instructions = case.function().instructions();
    Row { name: case.name, dtype: "float32", ulp, bound: case.bound, at: at.join(", "), samples, instructions }
}

fn double(case: &double::Case, samples: usize) -> Row {
    let worst = case.worst(samples);
    let function = case.function();
    let at: Vec<String> = worst.at[..function.inputs()].iter().map(|x| format!("{x:e}")).collect();
    Row {
        name: case.name,
        dtype: "float64",
        ulp: worst.ulp,
        bound: case.bound,
        at: at.join(", "),
        samples: worst.samples,
        instructions: function.instructions(),
    }
}

fn special(case: &special::Case, scalar: ScalarType, samples: usize) -> Row {
    let worst = case.worst(scalar, samples);
    let at: Vec<String> = worst.at.iter().map(|x| format!("{x:e}")).collect();
    Row {
        name: case.name,
        dtype: if scalar == ScalarType::F64 { "float64" } else { "float32" },
        ulp: worst.ulp,
        bound: case.bound(scalar),
        at: at.join(", "),
        samples: worst.samples,
        instructions: case.function(scalar).instructions(),
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "docs/numerics.md".to_string());
    let samples = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(50_000_000);
    let mut table = HEADER.to_string();
    let mut broken = false;
    let few = (samples / SINGLE_PER_DOUBLE).max(1);
    let singles = single::CASES.iter().map(|c| single(c, samples));
    let doubles = double::CASES.iter().map(|c| double(c, few));
    broken |= append(&mut table, singles.chain(doubles))?;
    table += SPECIAL_HEADER;
    let both = special::CASES.iter().flat_map(|c| [ScalarType::F32, ScalarType::F64].map(|s| special(c, s, few)));
    broken |= append(&mut table, both)?;
    std::fs::write(&file, table)?;
    if broken { Err(io::Error::other("an error is beyond its bound")) } else { Ok(()) }
}

/// Adds the rows to the table; whether one is beyond its bound.
fn append(table: &mut String, rows: impl Iterator<Item = Row>) -> io::Result<bool> {
    let mut broken = false;
    for row in rows {
        let Row { name, dtype, ulp, bound, at, samples, instructions } = row;
        broken |= ulp.is_nan() || ulp > bound + 1e-9;
        let line = format!("| `{name}` | {dtype} | {ulp:.3} | {bound} | {at} | {samples} | {instructions} |");
        println!("{line}");
        writeln!(table, "{line}").map_err(io::Error::other)?;
    }
    Ok(broken)
}
