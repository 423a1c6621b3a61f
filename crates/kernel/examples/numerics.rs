//! Measures the largest error of every function of the math library and writes tables into a file,
//! between `<!-- begin: math -->` and `<!-- end: math -->`, and likewise for `special`. The rest of
//! the file does not change.
//!
//! `cargo run --release -p dml-kernel --example numerics -- [FILE] [SAMPLES]`; FILE is
//! docs/reference/numerics.md and SAMPLES (per f32 function) 50,000,000 when left out. f64 is
//! compared with a multiprecision library, so it takes fewer.

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

const COLUMNS: &str = "\
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
    // Of equal errors, the one with the larger bits of the input is reported, so that the table
    // does not depend on the order of the threads.
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
    let file = arguments.next().unwrap_or_else(|| "docs/reference/numerics.md".to_string());
    let samples = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(50_000_000);
    let text = std::fs::read_to_string(&file)?;
    // The measurement takes minutes, so a file without the marks is rejected first.
    let text = replaced(&replaced(&text, "math", "")?, "special", "")?;
    let few = (samples / SINGLE_PER_DOUBLE).max(1);
    let singles = single::CASES.iter().map(|c| single(c, samples));
    let doubles = double::CASES.iter().map(|c| double(c, few));
    let (math, math_broken) = table(singles.chain(doubles))?;
    let both = special::CASES.iter().flat_map(|c| [ScalarType::F32, ScalarType::F64].map(|s| special(c, s, few)));
    let (special, special_broken) = table(both)?;
    std::fs::write(&file, replaced(&replaced(&text, "math", &math)?, "special", &special)?)?;
    if math_broken || special_broken { Err(io::Error::other("an error is beyond its bound")) } else { Ok(()) }
}

/// The text with `table` between the two marks with this name.
fn replaced(text: &str, name: &str, table: &str) -> io::Result<String> {
    let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->\n"));
    let parts = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = parts.ok_or_else(|| io::Error::other(format!("there is no place for the table `{name}`")))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// The rows as a table, and whether an error exceeds its bound.
fn table(rows: impl Iterator<Item = Row>) -> io::Result<(String, bool)> {
    let (mut table, mut broken) = (COLUMNS.to_string(), false);
    for row in rows {
        let Row { name, dtype, ulp, bound, at, samples, instructions } = row;
        broken |= ulp.is_nan() || ulp > bound + 1e-9;
        let line = format!("| `{name}` | {dtype} | {ulp:.3} | {bound} | {at} | {samples} | {instructions} |");
        println!("{line}");
        writeln!(table, "{line}").map_err(io::Error::other)?;
    }
    Ok((table, broken))
}
