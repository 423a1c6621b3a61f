//! The choice of the tile for a product without matrix units: the table of tiles, and the cost
//! model that chooses among them.

use crate::matmul::rounding::Rounding;
use crate::matmul::tile::Tile;
use crate::primitives::loops::MAX_SOFTWARE_ITERATIONS;
use crate::primitives::registers::Loads;
use dml_engine::{AdapterInfo, AdapterKind, RegisterFile};
use dml_kernel::dense::MAX_GROUPS;
use smallvec::{SmallVec, smallvec};

/// How a product is computed in one launch, in tiles of one kind.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Choice<T = Tile> {
    /// The tile.
    pub tile: T,
    /// Number of ranges into which k is divided among workgroups; 1 to 64 on a GPU.
    pub split_k: u32,
}

/// A tile, and its rate: the fraction of the adapter's arithmetic throughput that it reaches on
/// large products.
struct RatedTile {
    tile: Tile,
    rate: f64,
    /// The rate if the second operand is contiguous along k, and is transposed on its way to shared
    /// memory.
    rate_along_k: f64,
}

const fn entry(tile: Tile, rate: f64) -> RatedTile {
    RatedTile { tile, rate, rate_along_k: 0.9 * rate }
}

/// For small products: a tile that does not prefetch in the last step.
const fn small(tile: Tile) -> Tile {
    Tile { guard: true, ..tile }
}

/// A tile with half the shared memory.
const fn one_stage(tile: Tile) -> Tile {
    Tile { stages: 1, ..tile }
}

/// A tile that is filled by this many invocations along k.
const fn k_lanes(k_lanes: u32, tile: Tile) -> Tile {
    Tile { k_lanes, ..tile }
}

/// A tile with the loop unrolled by two k-tiles.
const fn unroll(tile: Tile) -> Tile {
    Tile { unroll: true, ..tile }
}

/// A tile that is transposed with columns permuted.
const fn swizzle(tile: Tile) -> Tile {
    Tile { swizzle: true, ..tile }
}

/// The step along k of large tiles.
pub const STEP: u32 = 16;

/// For GPUs. Rates are relative to what cuBLAS reaches at 4096 in f32 on an H100
/// (docs/notebook/2026-11.md).
const GPU: &[RatedTile] = &[
    RatedTile { tile: unroll(k_lanes(8, Tile::new(128, 256, 16, [8, 8], [8, 4]))), rate: 0.93, rate_along_k: 0.86 },
    RatedTile { tile: unroll(Tile::new(256, 128, 16, [8, 8], [8, 4])), rate: 0.87, rate_along_k: 0.87 },
    RatedTile { tile: k_lanes(2, Tile::new(64, 128, 16, [8, 8], [8, 4])), rate: 0.86, rate_along_k: 0.58 },
    RatedTile { tile: swizzle(Tile::new(128, 128, 16, [8, 8], [8, 4])), rate: 0.79, rate_along_k: 0.75 },
    RatedTile { tile: Tile::new(128, 64, 16, [8, 8], [8, 4]), rate: 0.74, rate_along_k: 0.56 },
    entry(small(Tile::new(64, 64, 16, [4, 4], [8, 4])), 0.51),
    entry(small(Tile::new(32, 64, 16, [4, 4], [8, 4])), 0.46),
    entry(small(Tile::new(64, 32, 16, [4, 4], [8, 4])), 0.46),
    entry(small(Tile::new(32, 32, 32, [4, 2], [4, 8])), 0.32),
    entry(small(Tile::new(16, 32, 32, [2, 2], [4, 8])), 0.23),
    entry(small(Tile::new(32, 16, 32, [2, 2], [8, 4])), 0.23),
    entry(small(Tile::new(16, 16, 32, [2, 2], [8, 8])), 0.20),
    entry(small(Tile::new(128, 16, 16, [4, 4], [8, 4])), 0.28),
    entry(small(Tile::new(16, 128, 16, [4, 4], [4, 8])), 0.28),
    entry(small(Tile::new(256, 8, 16, [4, 2], [16, 4])), 0.18),
    entry(small(Tile::new(8, 256, 16, [2, 4], [4, 16])), 0.18),
];

/// For GPUs with few registers (Intel's, Arm's), beside those of [`GPU`] that fit: an invocation
/// has half the accumulators. Rates are estimates from the shared memory that a multiplication
/// reads, not measured.
const FEW_REGISTERS: &[RatedTile] = &[
    entry(Tile::new(128, 64, 16, [8, 4], [4, 8]), 0.64),
    entry(Tile::new(64, 128, 16, [4, 8], [8, 4]), 0.64),
    entry(Tile::new(128, 64, 8, [8, 4], [4, 8]), 0.62),
    entry(Tile::new(64, 128, 8, [4, 8], [8, 4]), 0.62),
    entry(Tile::new(64, 64, 8, [8, 4], [4, 8]), 0.56),
    entry(Tile::new(64, 64, 8, [4, 4], [8, 4]), 0.45),
    entry(Tile::new(32, 64, 8, [4, 4], [8, 4]), 0.40),
    entry(Tile::new(32, 32, 8, [4, 2], [4, 8]), 0.28),
    entry(Tile::new(32, 32, 16, [2, 2], [8, 4]), 0.22),
];

/// For drivers that run on the CPU: an invocation is a lane of a vector there, loads are gathers,
/// and a barrier is a switch of coroutines. These tiles have few invocations, many accumulators for
/// each, and little code, since compiling is slow.
const SOFTWARE: &[RatedTile] = &[
    entry(one_stage(Tile::new(128, 64, 4, [8, 8], [8, 8])), 1.0),
    entry(one_stage(Tile::new(32, 64, 4, [8, 8], [4, 8])), 0.8),
    entry(one_stage(Tile::new(16, 16, 4, [4, 4], [4, 4])), 0.6),
];

/// The adapter's properties in the cost model.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    /// Whether the adapter is a software adapter, which has its own table.
    pub software: bool,
    /// Maximum bytes of shared memory of a workgroup.
    pub shared_memory: u32,
    /// Maximum invocations of a workgroup.
    pub invocations: u32,
    /// The registers, if they limit tiles.
    pub registers: Option<RegisterFile>,
    /// Maximum elements of a workgroup's tile of the result, so that kernels are smaller than some
    /// that the driver refuses.
    pub most_elements: u32,
    /// Whether tiles are [lean](Tile::lean) where operands are loaded as vectors.
    pub lean: bool,
    /// How operands are loaded: the one of the two that takes more registers.
    pub loads: Loads,
    /// Number of compute units; an estimate if the driver does not report it.
    pub compute_units: f64,
    /// Memory bandwidth in bytes a cycle, an estimate: Vulkan does not report it.
    pub memory: f64,
}

impl Limits {
    /// The limits of an adapter.
    pub fn of(info: &AdapterInfo) -> Limits {
        // More memory than this means HBM.
        let is_large = info.memory_total > 32 << 30;
        Limits {
            software: info.kind == AdapterKind::Software,
            shared_memory: info.capabilities.max_shared_memory,
            invocations: info.capabilities.max_workgroup_invocations,
            registers: info.capabilities.registers,
            most_elements: u32::MAX,
            // NVIDIA's tiles were timed as they are.
            lean: info.kind != AdapterKind::Software && info.vendor != "NVIDIA",
            loads: Loads::Vectors,
            compute_units: info.capabilities.compute_units.map(f64::from).unwrap_or(match info.kind {
                AdapterKind::Discrete if is_large => 128.0,
                AdapterKind::Discrete => 48.0,
                AdapterKind::Virtual => 32.0,
                AdapterKind::Integrated => 12.0,
                AdapterKind::Software => 4.0,
            }),
            memory: match info.kind {
                AdapterKind::Discrete if is_large => 1_500.0,
                AdapterKind::Discrete | AdapterKind::Virtual => 300.0,
                AdapterKind::Integrated | AdapterKind::Software => 50.0,
            },
        }
    }

    /// The rate of a tile of these rows and columns, if it rounds operands on load.
    pub fn rate_rounding(&self, rate: f64, size: [u32; 2], rounding: Rounding) -> f64 {
        // On a CPU the overhead of a launch is larger than the cost of rounding.
        if self.software || rounding.is_none() { rate } else { rounding.rate_with_rounding(rate, size) }
    }

    /// The estimated cost of `launches` successive launches that access `bytes` bytes in total.
    pub fn passes(&self, launches: u32, bytes: f64) -> f64 {
        f64::from(launches) * DEPENDENT_LAUNCH_CYCLES + bytes / self.memory
    }

    /// Whether the adapter can run a tile of elements of `bytes` bytes.
    pub fn allow(&self, tile: &Tile, bytes: u32) -> bool {
        tile.m * tile.n <= self.most_elements
            && tile.shared_bytes(bytes) <= self.shared_memory
            && tile.threads() <= self.invocations
            && tile.kept(bytes, self.loads).fits(self.registers, tile.threads())
    }
}

#[cfg(test)]
impl Limits {
    /// The limits of a large GPU, for tests.
    pub const LARGE_GPU: Limits = Limits {
        software: false,
        shared_memory: 48 << 10,
        invocations: 1024,
        registers: None,
        most_elements: u32::MAX,
        lean: false,
        loads: Loads::Vectors,
        compute_units: 128.0,
        memory: 1_500.0,
    };
}

/// A tile's properties in the cost model.
#[derive(Copy, Clone, Debug)]
pub struct CostInputs {
    /// Rows, columns and step along k of a workgroup.
    pub size: [u32; 3],
    /// Invocations of a workgroup.
    pub threads: u32,
    /// Loop iterations of a step along k.
    pub loop_iterations: u32,
    /// Whether k may be divided among workgroups.
    pub divided: bool,
    /// Minimum cycles of a step along k, however little the unit computes: the latency of memory.
    pub latency: f64,
    /// Cycles of a workgroup before and after its loop.
    pub around: f64,
}

/// The numbers of ranges into which k may be divided among workgroups.
fn splits(limits: &Limits, [batch, m, n, k]: [i64; 4], work: CostInputs) -> SmallVec<[u32; 16]> {
    if !work.divided {
        return smallvec![1];
    }
    let step = work.size[2];
    if limits.software {
        let steps = (MAX_SOFTWARE_ITERATIONS / u64::from(work.loop_iterations)).max(1);
        return smallvec![(k as u64).div_ceil(steps * u64::from(step)).max(1) as u32];
    }
    let allowed = |&parts: &u32| {
        let long = i64::from(parts) * i64::from(step) * 4 <= k && batch * m * n * i64::from(parts) <= MAX_PARTIAL_SUMS;
        parts == 1 || (long && batch * i64::from(parts) <= MAX_GROUPS as i64)
    };
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64].into_iter().take_while(allowed).collect()
}

/// Maximum number of partial sums, which take memory.
const MAX_PARTIAL_SUMS: i64 = 1 << 25;

/// The tile with the least estimated time for `size = [batch, m, n, k]`, among tiles with their
/// work and rates. Returns the time, the tile, and the number of ranges of k.
pub fn fastest<T: Copy>(
    limits: &Limits,
    size: [i64; 4],
    tiles: impl Iterator<Item = (T, CostInputs, f64)>,
) -> Option<(f64, T, u32)> {
    estimated_times(limits, size, tiles).reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// The estimated times of tiles with their work and rates, for each number of ranges into which k
/// may be divided.
pub fn estimated_times<T: Copy>(
    limits: &Limits,
    size: [i64; 4],
    tiles: impl Iterator<Item = (T, CostInputs, f64)>,
) -> impl Iterator<Item = (f64, T, u32)> {
    tiles.flat_map(move |(tile, work, rate)| {
        splits(limits, size, work)
            .into_iter()
            .map(move |parts| (estimate(limits, work, rate, size, parts), tile, parts))
    })
}

/// The tile for `size = [batch, m, n, k]`, computed in elements of `bytes` bytes, and its estimated
/// time. `b_along_k`: the second operand is contiguous along k.
pub fn choose(limits: &Limits, size: [i64; 4], bytes: u32, b_along_k: bool) -> (f64, Choice) {
    choose_within(limits, size, bytes, b_along_k, [u32::MAX; 2])
}

/// The estimated time of a tile of the table and its number of ranges of k, if operands are rounded
/// on load; see [`choose`].
pub fn time(
    limits: &Limits,
    size: [i64; 4],
    bytes: u32,
    b_along_k: bool,
    Choice { tile, split_k }: Choice,
    rounding: Rounding,
) -> f64 {
    let entry = entries(limits, bytes, b_along_k).find(|(of, ..)| *of == tile);
    entry.map_or(f64::INFINITY, |(_, work, rate)| {
        estimate(limits, work, limits.rate_rounding(rate, [tile.m, tile.n], rounding), size, split_k)
    })
}

/// [`choose`] with k undivided; `None` if k is too long for a software adapter.
pub fn choose_undivided(limits: &Limits, size: [i64; 4], bytes: u32, b_along_k: bool) -> Option<Tile> {
    let whole = candidates_with_times(limits, size, bytes, b_along_k).filter(|&(.., parts)| parts == 1);
    whole.min_by(|x, y| x.0.total_cmp(&y.0)).map(|(_, tile, _)| tile)
}

/// [`choose`] among tiles with at most `most` rows and columns.
pub fn choose_within(
    limits: &Limits,
    size: [i64; 4],
    bytes: u32,
    b_along_k: bool,
    [rows, columns]: [u32; 2],
) -> (f64, Choice) {
    let tiles = entries(limits, bytes, b_along_k).filter(|(tile, ..)| tile.m <= rows && tile.n <= columns);
    let least = one_stage(Tile::new(16, 16, 4, [4, 4], [4, 4]));
    let (time, tile, split_k) = fastest(limits, size, tiles).unwrap_or((f64::INFINITY, least, 1));
    (time, Choice { tile, split_k })
}

/// Every tile that fits and its numbers of ranges of k, with the estimated time; see [`choose`].
pub fn candidates_with_times(
    limits: &Limits,
    size: [i64; 4],
    bytes: u32,
    b_along_k: bool,
) -> impl Iterator<Item = (f64, Tile, u32)> {
    estimated_times(limits, size, entries(limits, bytes, b_along_k))
}

/// The tiles of the table that fit, with their work and rates.
pub fn entries(limits: &Limits, bytes: u32, b_along_k: bool) -> impl Iterator<Item = (Tile, CostInputs, f64)> {
    let (table, more): (_, &[RatedTile]) = match limits.registers {
        _ if limits.software => (SOFTWARE, &[]),
        Some(file) if file.are_few() => (GPU, FEW_REGISTERS),
        _ => (GPU, &[]),
    };
    table.iter().chain(more).filter(move |e| limits.allow(&e.tile, bytes)).map(move |e| {
        let size = [e.tile.m, e.tile.n, e.tile.k];
        let work = CostInputs {
            size,
            threads: e.tile.threads(),
            loop_iterations: 1,
            divided: true,
            latency: 600.0,
            around: 1_500.0,
        };
        // Single elements are too many positions to keep in registers.
        let lean = limits.lean && limits.loads <= Loads::VectorsToEnd;
        (Tile { lean, ..e.tile }, work, if b_along_k { e.rate_along_k } else { e.rate })
    })
}

/// Cost of a launch that waits for the previous one, in cycles.
const DEPENDENT_LAUNCH_CYCLES: f64 = 5_000.0;

/// Estimated time in clock cycles of a unit that multiplies and adds 128 times a cycle.
pub fn estimate(limits: &Limits, work: CostInputs, rate: f64, [batch, m, n, k]: [i64; 4], split_k: u32) -> f64 {
    let CostInputs { size: [tile_m, tile_n, tile_k], latency, around, .. } = work;
    let ceil = |x: i64, y: u32| (x as f64 / f64::from(y)).ceil();
    let groups = ceil(m, tile_m) * ceil(n, tile_n) * batch as f64 * f64::from(split_k);
    if limits.software {
        // A core runs one workgroup after another; the padding of a tile costs as much as its other
        // elements.
        return (groups / limits.compute_units).ceil() * (f64::from(tile_m * tile_n) * k as f64 / rate + around);
    }
    // Workgroups that are resident at the same time share the unit, and hide each other's latency.
    // There may be fewer of them in the last round.
    let resident = resident(work);
    let full = (groups / (limits.compute_units * resident)).floor();
    let last = ((groups - full * limits.compute_units * resident) / limits.compute_units).ceil();
    let step = f64::from(tile_m * tile_n * tile_k) / 128.0 / rate;
    let round = |workgroups: f64| (step * workgroups).max(latency);
    let each_step = full * round(resident) + if last > 0.0 { round(last) } else { 0.0 };
    let rounds = full + last.min(1.0);
    let steps = (k as f64 / f64::from(split_k) / f64::from(tile_k)).ceil();
    let sums = (batch * m * n) as f64 * f64::from(split_k);
    let second = if split_k > 1 { limits.passes(1, 8.0 * sums) } else { 0.0 };
    steps * each_step + rounds * around + second
}

/// Occupancy: workgroups that run on a unit at the same time. It is limited by 65,536 registers,
/// two for each accumulator of an invocation.
pub fn resident(work: CostInputs) -> f64 {
    let CostInputs { size: [tile_m, tile_n, _], threads, .. } = work;
    let registers = (2 * tile_m * tile_n / threads).clamp(32, 255);
    f64::from(65_536 / (registers * threads)).max(1.0)
}

/// Every tile of the tables, for tests and benchmarks.
pub fn tiles() -> impl Iterator<Item = Tile> {
    GPU.iter().chain(FEW_REGISTERS).chain(SOFTWARE).map(|e| e.tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn limits(shared_memory: u32, invocations: u32) -> Limits {
        Limits { shared_memory, invocations, ..Limits::LARGE_GPU }
    }

    #[test]
    fn tiles_are_valid_and_different() {
        assert!(tiles().all(|t| t.is_valid()));
        let different: HashSet<Tile> = tiles().collect();
        assert_eq!(different.len(), tiles().count());
    }

    #[test]
    fn large_products_take_large_tiles_and_long_ones_are_divided() {
        let big = limits(48 << 10, 1024);
        let square = choose(&big, [1, 4096, 4096, 4096], 4, false).1;
        assert!(square.tile.m * square.tile.n >= 64 * 128 && square.split_k == 1, "{square:?}");
        assert!(choose(&big, [1, 64, 64, 65_536], 4, false).1.split_k > 8);
        assert!(choose(&big, [64, 64, 64, 64], 4, false).1.split_k == 1);
    }

    #[test]
    fn small_adapters_get_tiles_that_fit() {
        for (shared, invocations) in [(48 << 10, 1024), (32 << 10, 256), (16 << 10, 128)] {
            let limits = limits(shared, invocations);
            for size in [[1, 4096, 4096, 4096], [1, 1, 1, 1], [3, 17, 33, 65], [1, 100_000, 4, 64]] {
                for bytes in [4, 8] {
                    let choice = choose(&limits, size, bytes, false).1;
                    assert!(limits.allow(&choice.tile, bytes), "{size:?} {choice:?}");
                }
            }
        }
    }
}
