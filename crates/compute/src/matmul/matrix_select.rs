//! Whether a product runs on matrix units, and in which tiles: what the adapter offers, and the
//! estimate of [`select`] with rates of its own.

use crate::matmul::matrix_tile::{MatrixTile, Units, sums};
use crate::matmul::rounding::Rounding;
use crate::matmul::select::{self, Choice, Limits, Work, fastest, rated_of};
use crate::matmul::split::{EDGE, Form};
use crate::matmul::tile::Tile;
use crate::matmul::{scales, terms};
use crate::primitives::loops::SOFTWARE_TURNS;
use dml_engine::{AdapterInfo, AdapterKind, MatrixShape, element_dtype};
use dml_environment::{MATRIX_UNITS, MatrixUnits};
use dml_kernel::DType;
use smallvec::{SmallVec, smallvec};

/// How a product is run on matrix units.
pub type MatrixChoice = Choice<MatrixTile>;

/// How a product of operands in two terms is run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SplitChoice {
    /// Of most of the result.
    pub tile: MatrixTile,
    /// Of what the terms do not hold: a part of a [block](Self::blocks).
    pub plain: Tile,
}

impl SplitChoice {
    /// Rows and columns that either way computes together.
    pub fn blocks(tile: &MatrixTile) -> [u32; 2] {
        [tile.m, tile.n].map(|size| size.max(EDGE))
    }
}

/// The matrix units of an adapter for products of f16 or bf16 with sums in f32, or of i8 with sums
/// in i32, best first; none for other dtypes, and where there are none to be used. Which of them
/// multiply rightly, [`self_test`](super::self_test) knows.
///
/// Software adapters' are slower than plain tiles, and used where `TORCH_DML_MATRIX_UNITS` asks for
/// them.
pub fn candidates(info: &AdapterInfo, operands: DType) -> smallvec::IntoIter<[Units; MOST_SHAPES]> {
    let software = info.kind == AdapterKind::Software;
    let of = |shape, emulated| Units {
        shape,
        lanes: info.capabilities.subgroup_size,
        emulated,
        small: software || emulated,
        bytes: operands.bytes() as u32,
    };
    let own = || shapes(info, operands).into_iter().map(|shape| of(shape, false)).collect();
    let all: SmallVec<[Units; MOST_SHAPES]> = match MATRIX_UNITS.get() {
        _ if !matches!(operands, DType::F16 | DType::BF16 | DType::I8) => SmallVec::new(),
        Some(MatrixUnits::Off) => SmallVec::new(),
        Some(MatrixUnits::Emulated) if info.capabilities.subgroup_shuffle => smallvec![of([16, 16, 16], true)],
        Some(MatrixUnits::Emulated) => SmallVec::new(),
        Some(MatrixUnits::On) => own(),
        None if software => SmallVec::new(),
        None => own(),
    };
    all.into_iter()
}

/// Shapes that are considered at most.
pub const MOST_SHAPES: usize = 4;

/// The adapter's products of a dtype with sums in f32, or i32 of i8, best first.
pub fn shapes(info: &AdapterInfo, operands: DType) -> SmallVec<[[u32; 3]; MOST_SHAPES]> {
    let offers = move |s: &&MatrixShape| {
        let dtypes = [s.a, s.b, s.c, s.result].map(element_dtype);
        let sums = sums(operands);
        let types = dtypes == [operands, operands, sums, sums].map(Some);
        types && !s.saturating && [s.m, s.n, s.k].iter().all(|x| x.is_power_of_two() && *x >= 8)
    };
    let mut shapes: SmallVec<[[u32; 3]; 16]> =
        info.capabilities.matrix_shapes.iter().filter(offers).map(|s| [s.m, s.n, s.k]).collect();
    // Square ones of 16 are what every vendor's units compute at full speed.
    shapes.sort_unstable_by_key(|&[m, n, k]| (m.abs_diff(16) + n.abs_diff(16) + k.abs_diff(16), m, n, k));
    shapes.dedup();
    shapes.into_iter().take(MOST_SHAPES).collect()
}

/// A workgroup's tile and a subgroup's part of it, along m and n, and the share of the rate that
/// f32 reaches without matrix units, on an H100 (docs/notebook/2026-11.md).
struct Entry {
    size: [u32; 3],
    subgroup: [u32; 2],
    rate: f64,
}

/// The part of its rate that a tile of more than 32 elements along k keeps where long steps do not
/// suit the operands.
const LONG_STEP: f64 = 0.75;

const ENTRIES: &[Entry] = &[
    Entry { size: [128, 128, 64], subgroup: [64, 64], rate: 7.0 },
    Entry { size: [128, 256, 32], subgroup: [64, 64], rate: 5.7 },
    Entry { size: [128, 128, 32], subgroup: [64, 64], rate: 5.4 },
    Entry { size: [128, 128, 64], subgroup: [32, 64], rate: 4.7 },
    Entry { size: [64, 128, 64], subgroup: [32, 64], rate: 3.8 },
    Entry { size: [64, 128, 32], subgroup: [32, 64], rate: 3.2 },
    Entry { size: [64, 64, 64], subgroup: [32, 32], rate: 2.8 },
    Entry { size: [64, 64, 32], subgroup: [32, 32], rate: 2.5 },
    Entry { size: [32, 32, 32], subgroup: [16, 16], rate: 1.2 },
    Entry { size: [16, 32, 32], subgroup: [16, 16], rate: 0.6 },
];

/// Sums that an invocation may hold: half of its registers. There are 256 of them, and where
/// subgroups are smaller (Intel's) 128.
fn most_sums(lanes: u32) -> u32 {
    if lanes >= 32 { 128 } else { 64 }
}

/// The tiles of the table in matrices of an adapter's shape.
pub fn tiles(units: Units) -> impl Iterator<Item = (MatrixTile, f64)> {
    let Units { shape, lanes, emulated, small, bytes } = units;
    let entries = ENTRIES.iter().filter(move |entry| !small || entry.subgroup == [16, 16]);
    entries.filter_map(move |Entry { size: [m, n, k], subgroup: [subgroup_m, subgroup_n], rate }| {
        let tile = MatrixTile {
            m: *m,
            n: *n,
            k: (*k * 2 / bytes).max(shape[2]),
            subgroup_m: (*subgroup_m).max(shape[0]),
            subgroup_n: (*subgroup_n).max(shape[1]),
            shape,
            lanes,
            emulated,
            bytes,
        };
        (tile.is_valid() && tile.sums() <= most_sums(lanes)).then_some((tile, *rate))
    })
}

/// The tile for `size = [batch, m, n, k]`, and how long it is estimated to take, in the units of
/// plain tiles' estimates.
///
/// `long_steps`: see [`Question`](super::choice::Question).
pub fn choose(limits: &Limits, units: Units, size: [i64; 4], long_steps: bool) -> Option<(f64, MatrixChoice)> {
    fastest(limits, size, entries(limits, units, long_steps, Rounding::NONE))
        .map(|(time, tile, split_k)| (time, MatrixChoice { tile, split_k }))
}

/// Every tile that fits and its parts of k, with the estimate of its time; see [`choose`].
pub fn rated(
    limits: &Limits,
    units: Units,
    size: [i64; 4],
    long_steps: bool,
    rounding: Rounding,
) -> impl Iterator<Item = (f64, MatrixTile, u32)> {
    rated_of(limits, size, entries(limits, units, long_steps, rounding))
}

/// The tiles of the table that fit, with their work and their rates.
pub fn entries(
    limits: &Limits,
    units: Units,
    long_steps: bool,
    rounding: Rounding,
) -> impl Iterator<Item = (MatrixTile, Work, f64)> {
    let fits = move |tile: &MatrixTile| {
        let fits_adapter = tile.shared_bytes() <= limits.shared_memory && tile.threads() <= limits.invocations;
        fits_adapter && rounding.fits(tile)
    };
    tiles(units).filter(move |(tile, _)| fits(tile)).map(move |(tile, rate)| {
        let rate = if long_steps || tile.k * tile.bytes <= 64 { rate } else { LONG_STEP * rate };
        (tile, work(&tile, true), limits.rate_rounding(rate, [tile.m, tile.n], rounding))
    })
}

fn work(tile: &MatrixTile, divided: bool) -> Work {
    Work {
        size: [tile.m, tile.n, tile.k],
        threads: tile.threads(),
        turns: tile.turns(),
        divided,
        // On an H100: a tile goes through registers to shared memory and back before it is
        // multiplied.
        latency: 770.0 + 7.4 * f64::from(tile.k * tile.bytes),
        // There, too: most of it is a subgroup's way through shared memory with its sums, some rows
        // after the others.
        around: 4.2 * f64::from(tile.subgroup_m * tile.subgroup_n),
    }
}

/// How a product of float32 in two terms is run, and the estimate of its time. `b_along_k`: see
/// [`Question`](super::choice::Question).
pub fn choose_split(limits: &Limits, units: Units, size: [i64; 4], b_along_k: bool) -> Option<(f64, SplitChoice)> {
    let [batch, m, n, k] = size;
    let fits = |tile: &MatrixTile| {
        16 * tile.units_of_terms() <= limits.shared_memory
            && tile.threads() <= limits.invocations
            && !(limits.software && tile.turns_of_terms(k as u64) > SOFTWARE_TURNS)
    };
    let tiles = tiles(units).filter(|(tile, _)| fits(tile)).map(|(tile, rate)| (tile, work(&tile, false), rate));
    let (time, tile, _) = terms::fits(size).then(|| fastest(limits, [batch, m, n, 3 * k], tiles)).flatten()?;
    let (_, plain) = select::choose_within(limits, size, 4, b_along_k, SplitChoice::blocks(&tile));
    // Neither launch divides k, which software adapters may have to.
    if limits.software && plain.split_k > 1 {
        return None;
    }
    let gathered = 8 * batch * m * n * ((k - 1) / i64::from(scales::run(k)));
    // Zeros, the largest of each row and column, the split, and the product of what it does not
    // hold.
    Some((
        time + limits.passes(4, preparation(size, Form::Halves) + gathered as f64),
        SplitChoice { tile, plain: plain.tile },
    ))
}

/// How a product of float32 rounded to bfloat16 is run, and the estimate of its time.
pub fn choose_rounded(limits: &Limits, units: Units, size: [i64; 4]) -> Option<(f64, MatrixChoice)> {
    let (time, choice) = terms::fits(size).then(|| choose(limits, units, size, true)).flatten()?;
    Some((time + limits.passes(1, preparation(size, Form::Rounded)), choice))
}

/// Bytes that go through memory where operands become terms.
fn preparation([batch, m, n, k]: [i64; 4], form: Form) -> f64 {
    let each = match form {
        Form::Halves => 4 + 4 + 4,
        Form::Rounded => 4 + 2,
    };
    (batch * k * (m + n) * each) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_fit_into_registers() {
        for (lanes, largest) in [(8, 32 * 16), (16, 32 * 32), (32, 64 * 64), (64, 64 * 64)] {
            for shape in [[16, 16, 16], [8, 16, 16]] {
                let all: Vec<_> = tiles(Units { shape, lanes, emulated: false, small: false, bytes: 2 }).collect();
                assert!(all.iter().all(|(tile, _)| tile.sums() <= most_sums(lanes)), "{lanes} lanes");
                let most = all.iter().map(|(tile, _)| tile.subgroup_m * tile.subgroup_n).max();
                assert!(most <= Some(largest) && most >= Some(256), "{lanes} lanes: {most:?}");
            }
        }
    }
}
