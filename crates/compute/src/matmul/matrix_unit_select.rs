//! Whether a product runs on matrix units, and in which tiles: the adapter's shapes, and the cost
//! model of [`select`] with separate rates.

use crate::matmul::matrix_unit_tile::{MatrixTile, Units, sums};
use crate::matmul::rounding::Rounding;
use crate::matmul::select::{self, Choice, CostInputs, Limits, estimated_times, fastest};
use crate::matmul::split::{Form, TILE_SIZE};
use crate::matmul::tile::Tile;
use crate::matmul::{scales, terms};
use crate::primitives::loops::MAX_SOFTWARE_ITERATIONS;
use dml_engine::{AdapterInfo, AdapterKind, MatrixShape, element_dtype};
use dml_environment::{MATRIX_UNITS, MatrixUnits};
use dml_kernel::DType;
use smallvec::{SmallVec, smallvec};

/// The tile on matrix units and the number of parts of k.
pub type MatrixChoice = Choice<MatrixTile>;

/// The tiles of a product of operands in two terms.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SplitChoice {
    /// The tile for most of the result.
    pub tile: MatrixTile,
    /// The tile for numbers that terms cannot represent; it divides a [block](Self::blocks).
    pub fallback_tile: Tile,
}

impl SplitChoice {
    /// Rows and columns of a block, which is computed by either tile as a whole.
    pub fn blocks(tile: &MatrixTile) -> [u32; 2] {
        [tile.m, tile.n].map(|size| size.max(TILE_SIZE))
    }
}

/// The adapter's matrix units for products of f16 or bf16 with accumulators in f32, or of i8 with
/// accumulators in i32, best first; empty for other dtypes, and if none may be used. `self_test`
/// finds those that are correct.
///
/// Matrix units of software adapters are slower than tiles without them, and are only used if
/// `TORCH_DML_MATRIX_UNITS` requests it.
pub fn candidates(info: &AdapterInfo, operands: DType) -> smallvec::IntoIter<[Units; MAX_SHAPES]> {
    let own = || own(info, operands);
    let emulated = || {
        let units = units(info, operands, [16, 16, 16]);
        smallvec![Units { lanes: info.capabilities.subgroup_size, emulated: true, small: true, ..units }]
    };
    let all: SmallVec<[Units; MAX_SHAPES]> = match MATRIX_UNITS.get() {
        _ if !matches!(operands, DType::F16 | DType::BF16 | DType::I8) => SmallVec::new(),
        Some(MatrixUnits::Off) => SmallVec::new(),
        Some(MatrixUnits::Emulated) if info.capabilities.subgroup_shuffle => emulated(),
        Some(MatrixUnits::Emulated) => SmallVec::new(),
        Some(MatrixUnits::On) => own(),
        None if info.kind == AdapterKind::Software => SmallVec::new(),
        None => own(),
    };
    all.into_iter()
}

/// The adapter's own units for a dtype, best first, whether or not they may be used.
pub fn own(info: &AdapterInfo, operands: DType) -> SmallVec<[Units; MAX_SHAPES]> {
    shapes(info, operands).into_iter().map(|shape| units(info, operands, shape)).collect()
}

fn units(info: &AdapterInfo, operands: DType, shape: [u32; 3]) -> Units {
    Units {
        shape,
        lanes: info.capabilities.matrix_subgroup_size,
        emulated: false,
        small: info.kind == AdapterKind::Software,
        bytes: operands.bytes() as u32,
        transposes: info.vendor != "NVIDIA",
    }
}

/// Maximum number of candidate shapes.
pub const MAX_SHAPES: usize = 4;

/// The adapter's shapes for a dtype with accumulators in f32, or in i32 for i8, best first.
pub fn shapes(info: &AdapterInfo, operands: DType) -> SmallVec<[[u32; 3]; MAX_SHAPES]> {
    let offers = move |s: &&MatrixShape| {
        let dtypes = [s.a, s.b, s.c, s.result].map(element_dtype);
        let sums = sums(operands);
        let types = dtypes == [operands, operands, sums, sums].map(Some);
        types && !s.saturating && [s.m, s.n, s.k].iter().all(|x| x.is_power_of_two() && *x >= 8)
    };
    let mut shapes: SmallVec<[[u32; 3]; 16]> =
        info.capabilities.matrix_shapes.iter().filter(offers).map(|s| [s.m, s.n, s.k]).collect();
    // Every vendor's units compute square shapes of 16 at full speed.
    shapes.sort_unstable_by_key(|&[m, n, k]| (m.abs_diff(16) + n.abs_diff(16) + k.abs_diff(16), m, n, k));
    shapes.dedup();
    shapes.into_iter().take(MAX_SHAPES).collect()
}

/// A workgroup's tile and a subgroup's part of it, along m and n, and its rate as a fraction of
/// f32's rate without matrix units, on an H100 (docs/notebook/2026-11.md).
struct RatedTile {
    size: [u32; 3],
    subgroup: [u32; 2],
    rate: f64,
}

/// The factor of the rate of a tile with more than 32 elements along k, if long steps do not suit
/// the operands.
const LONG_STEP_RATE: f64 = 0.75;

const TILES: &[RatedTile] = &[
    RatedTile { size: [128, 128, 64], subgroup: [64, 64], rate: 7.0 },
    RatedTile { size: [128, 256, 32], subgroup: [64, 64], rate: 5.7 },
    RatedTile { size: [128, 128, 32], subgroup: [64, 64], rate: 5.4 },
    RatedTile { size: [128, 128, 64], subgroup: [32, 64], rate: 4.7 },
    RatedTile { size: [64, 128, 64], subgroup: [32, 64], rate: 3.8 },
    RatedTile { size: [64, 128, 32], subgroup: [32, 64], rate: 3.2 },
    RatedTile { size: [64, 64, 64], subgroup: [32, 32], rate: 2.8 },
    RatedTile { size: [64, 64, 32], subgroup: [32, 32], rate: 2.5 },
    RatedTile { size: [32, 32, 32], subgroup: [16, 16], rate: 1.2 },
    RatedTile { size: [16, 32, 32], subgroup: [16, 16], rate: 0.6 },
];

/// Smaller tiles of a subgroup, for adapters where those of [`TILES`] need more registers than
/// there are: Intel's. They are wider than high, because there a left matrix of 8x16 takes four
/// loads from shared memory, and a right one of 16x16 two. Rates are estimates from the shared
/// memory that a multiplication reads, not measured.
const SMALL_TILES: &[RatedTile] = &[
    RatedTile { size: [128, 128, 32], subgroup: [16, 32], rate: 2.4 },
    RatedTile { size: [64, 128, 32], subgroup: [16, 32], rate: 2.3 },
    RatedTile { size: [64, 64, 32], subgroup: [16, 32], rate: 2.1 },
    RatedTile { size: [64, 64, 32], subgroup: [16, 16], rate: 1.5 },
    RatedTile { size: [128, 128, 16], subgroup: [16, 16], rate: 1.3 },
    RatedTile { size: [64, 64, 16], subgroup: [16, 16], rate: 1.2 },
];

/// Maximum accumulators of an invocation: half of its registers. There are 256 of them, and 128
/// where subgroups are smaller (Intel's).
fn max_accumulators(lanes: u32) -> u32 {
    if lanes >= 32 { 128 } else { 64 }
}

/// The tiles of the tables in matrices of an adapter's shape.
pub fn tiles(units: Units) -> impl Iterator<Item = (MatrixTile, f64)> {
    in_shape(units, SMALL_TILES.iter().chain(TILES))
}

/// The tiles for which an adapter has the invocations and the registers; with small tiles where its
/// registers are few.
pub fn fitting_tiles(limits: &Limits, units: Units) -> impl Iterator<Item = (MatrixTile, f64)> + use<> {
    let Limits { invocations, registers, loads, most_elements, .. } = *limits;
    let more: &[RatedTile] = if registers.is_some_and(|file| file.are_few()) { SMALL_TILES } else { &[] };
    in_shape(units, more.iter().chain(TILES)).filter(move |(tile, _)| {
        tile.m * tile.n <= most_elements
            && tile.threads() <= invocations
            && tile.kept(registers, loads).fits(registers, tile.threads())
    })
}

fn in_shape(units: Units, table: impl Iterator<Item = &'static RatedTile>) -> impl Iterator<Item = (MatrixTile, f64)> {
    let Units { shape, lanes, emulated, small, bytes, transposes } = units;
    let entries = table.filter(move |entry| !small || entry.subgroup == [16, 16]);
    entries.filter_map(move |RatedTile { size: [m, n, k], subgroup: [subgroup_m, subgroup_n], rate }| {
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
            transposes,
        };
        (tile.is_valid() && tile.sums() <= max_accumulators(lanes)).then_some((tile, *rate))
    })
}

/// The tile for `size = [batch, m, n, k]`, and its estimated time, in the units of the estimates
/// without matrix units.
///
/// `prefers_long_steps`: see [`ChoiceKey`](super::choice::ChoiceKey).
pub fn choose(limits: &Limits, units: Units, size: [i64; 4], prefers_long_steps: bool) -> Option<(f64, MatrixChoice)> {
    fastest(limits, size, entries(limits, units, prefers_long_steps, Rounding::NONE))
        .map(|(time, tile, split_k)| (time, MatrixChoice { tile, split_k }))
}

/// Every tile that fits, with its numbers of parts of k and the estimated time; see [`choose`].
pub fn candidates_with_times(
    limits: &Limits,
    units: Units,
    size: [i64; 4],
    prefers_long_steps: bool,
    rounding: Rounding,
) -> impl Iterator<Item = (f64, MatrixTile, u32)> {
    estimated_times(limits, size, entries(limits, units, prefers_long_steps, rounding))
}

/// The tiles of the table that fit, with their work and their rates.
pub fn entries(
    limits: &Limits,
    units: Units,
    prefers_long_steps: bool,
    rounding: Rounding,
) -> impl Iterator<Item = (MatrixTile, CostInputs, f64)> {
    let fits = move |tile: &MatrixTile| tile.shared_bytes() <= limits.shared_memory && rounding.fits(tile);
    fitting_tiles(limits, units).filter(move |(tile, _)| fits(tile)).map(move |(tile, rate)| {
        let rate = if prefers_long_steps || tile.k * tile.bytes <= 64 { rate } else { LONG_STEP_RATE * rate };
        (tile, work(&tile, true), limits.rate_rounding(rate, [tile.m, tile.n], rounding))
    })
}

fn work(tile: &MatrixTile, divided: bool) -> CostInputs {
    CostInputs {
        size: [tile.m, tile.n, tile.k],
        threads: tile.threads(),
        loop_iterations: tile.loop_iterations(),
        divided,
        // Measured on an H100: a tile is copied through registers to shared memory and back before
        // it is multiplied.
        latency: 770.0 + 7.4 * f64::from(tile.k * tile.bytes),
        // Measured on an H100 too: mainly a subgroup stores its accumulators through shared memory,
        // a few rows at a time.
        around: 4.2 * f64::from(tile.subgroup_m * tile.subgroup_n),
    }
}

/// The tiles of a product of float32 in two terms, and the estimated time. `b_along_k`: see
/// [`ChoiceKey`](super::choice::ChoiceKey).
pub fn choose_split(limits: &Limits, units: Units, size: [i64; 4], b_along_k: bool) -> Option<(f64, SplitChoice)> {
    let [batch, m, n, k] = size;
    let fits = |tile: &MatrixTile| {
        16 * tile.vectors_of_terms() <= limits.shared_memory
            && !(limits.software && tile.term_iterations(k as u64) > MAX_SOFTWARE_ITERATIONS)
    };
    let tiles = fitting_tiles(limits, units)
        .filter(|(tile, _)| fits(tile))
        .map(|(tile, rate)| (tile, work(&tile, false), rate));
    let (time, tile, _) = terms::fits(size).then(|| fastest(limits, [batch, m, n, 3 * k], tiles)).flatten()?;
    let (_, plain) = select::choose_within(limits, size, 4, b_along_k, SplitChoice::blocks(&tile));
    // Neither launch divides k, which software adapters may require.
    if limits.software && plain.split_k > 1 {
        return None;
    }
    let accumulator_bytes = 8 * batch * m * n * ((k - 1) / i64::from(scales::run(k)));
    // Four launches: zeroing, the maxima of rows and columns, the conversion, and the product of
    // numbers that terms cannot represent.
    Some((
        time + limits.passes(4, preparation(size, Form::Halves) + accumulator_bytes as f64),
        SplitChoice { tile, fallback_tile: plain.tile },
    ))
}

/// The tile of a product of float32 rounded to bfloat16, and the estimated time.
pub fn choose_rounded(limits: &Limits, units: Units, size: [i64; 4]) -> Option<(f64, MatrixChoice)> {
    let (time, choice) = terms::fits(size).then(|| choose(limits, units, size, true)).flatten()?;
    Some((time + limits.passes(1, preparation(size, Form::Rounded)), choice))
}

/// Bytes of memory accesses of the conversion to terms.
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
    fn accumulators_fit_into_registers() {
        for (lanes, largest) in [(8, 32 * 16), (16, 32 * 32), (32, 64 * 64), (64, 64 * 64)] {
            for shape in [[16, 16, 16], [8, 16, 16]] {
                let all: Vec<_> =
                    tiles(Units { shape, lanes, emulated: false, small: false, bytes: 2, transposes: false }).collect();
                assert!(all.iter().all(|(tile, _)| tile.sums() <= max_accumulators(lanes)), "{lanes} lanes");
                let most = all.iter().map(|(tile, _)| tile.subgroup_m * tile.subgroup_n).max();
                assert!(most <= Some(largest) && most >= Some(256), "{lanes} lanes: {most:?}");
            }
        }
    }
}
