//! Which tile computes a product without matrix units: the table of tiles, and the estimate that
//! chooses among them.

use crate::matmul::rounding::Rounding;
use crate::matmul::tile::Tile;
use crate::primitives::loops::SOFTWARE_TURNS;
use dml_engine::{AdapterInfo, AdapterKind};
use dml_kernel::dense::MAX_GROUPS;
use smallvec::{SmallVec, smallvec};

/// How a product is run in one launch, in tiles of one kind.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Choice<T = Tile> {
    /// The tile.
    pub tile: T,
    /// Into how many parts k is divided among workgroups; 1 to 64 on a GPU.
    pub split_k: u32,
}

/// A tile, and the part of the adapter's arithmetic that it reaches on large products.
struct Entry {
    tile: Tile,
    rate: f64,
    /// The same where the second operand is contiguous along k and is transposed on its way to
    /// shared memory.
    rate_along_k: f64,
}

const fn entry(tile: Tile, rate: f64) -> Entry {
    Entry { tile, rate, rate_along_k: 0.9 * rate }
}

/// Tiles that prefetch nothing in the last step: for small products.
const fn small(tile: Tile) -> Tile {
    Tile { guard: true, ..tile }
}

/// Tiles of half the shared memory.
const fn one_stage(tile: Tile) -> Tile {
    Tile { stages: 1, ..tile }
}

/// Tiles that are filled by this many neighbours along k.
const fn k_lanes(k_lanes: u32, tile: Tile) -> Tile {
    Tile { k_lanes, ..tile }
}

/// Two k-tiles a turn.
const fn unroll(tile: Tile) -> Tile {
    Tile { unroll: true, ..tile }
}

/// Tiles that are transposed with columns exchanged.
const fn swizzle(tile: Tile) -> Tile {
    Tile { swizzle: true, ..tile }
}

/// For GPUs. Rates are shares of what cuBLAS reaches at 4096 in f32 on an H100
/// (docs/notebook/2026-11.md).
const GPU: &[Entry] = &[
    Entry { tile: unroll(k_lanes(8, Tile::new(128, 256, 16, [8, 8], [8, 4]))), rate: 0.93, rate_along_k: 0.86 },
    Entry { tile: unroll(Tile::new(256, 128, 16, [8, 8], [8, 4])), rate: 0.87, rate_along_k: 0.87 },
    Entry { tile: k_lanes(2, Tile::new(64, 128, 16, [8, 8], [8, 4])), rate: 0.86, rate_along_k: 0.58 },
    Entry { tile: swizzle(Tile::new(128, 128, 16, [8, 8], [8, 4])), rate: 0.79, rate_along_k: 0.75 },
    Entry { tile: Tile::new(128, 64, 16, [8, 8], [8, 4]), rate: 0.74, rate_along_k: 0.56 },
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

/// For drivers that run on the CPU: an invocation is a lane of a vector there, loads are gathers, a
/// barrier is a switch of coroutines. Few invocations, many sums each, and little code, since
/// compiling takes long.
const SOFTWARE: &[Entry] = &[
    entry(one_stage(Tile::new(128, 64, 4, [8, 8], [8, 8])), 1.0),
    entry(one_stage(Tile::new(32, 64, 4, [8, 8], [4, 8])), 0.8),
    entry(one_stage(Tile::new(16, 16, 4, [4, 4], [4, 4])), 0.6),
];

/// What the estimate knows of an adapter.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    /// Software adapters have a table of their own.
    pub software: bool,
    /// Bytes of shared memory of a workgroup.
    pub shared_memory: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Compute units; roughly, where the driver does not tell.
    pub units: f64,
    /// Bytes that memory gives in a cycle, roughly: Vulkan does not tell.
    pub memory: f64,
}

impl Limits {
    /// Those of an adapter.
    pub fn of(info: &AdapterInfo) -> Limits {
        // Of the memory that is stacked on the chip.
        let is_large = info.memory_total > 32 << 30;
        Limits {
            software: info.kind == AdapterKind::Software,
            shared_memory: info.capabilities.max_shared_memory,
            invocations: info.capabilities.max_workgroup_invocations,
            units: info.capabilities.compute_units.map(f64::from).unwrap_or(match info.kind {
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

    /// The rate of a tile of so many rows and columns that rounds what it reads.
    pub fn rate_rounding(&self, rate: f64, size: [u32; 2], rounding: Rounding) -> f64 {
        // On a processor a launch takes longer than rounding.
        if self.software || rounding.is_none() { rate } else { rounding.slowed(rate, size) }
    }

    /// The estimate of launches one after the other that go through so many bytes.
    pub fn passes(&self, launches: u32, bytes: f64) -> f64 {
        f64::from(launches) * NEXT_LAUNCH + bytes / self.memory
    }

    /// Whether a tile of elements of `bytes` bytes runs there.
    pub fn allow(&self, tile: &Tile, bytes: u32) -> bool {
        tile.shared_bytes(bytes) <= self.shared_memory && tile.threads() <= self.invocations
    }
}

#[cfg(test)]
impl Limits {
    /// A large GPU, for tests.
    pub const LARGE: Limits =
        Limits { software: false, shared_memory: 48 << 10, invocations: 1024, units: 128.0, memory: 1_500.0 };
}

/// What the estimate knows of a tile.
#[derive(Copy, Clone, Debug)]
pub struct Work {
    /// Rows, columns and step along k of a workgroup.
    pub size: [u32; 3],
    /// Its invocations.
    pub threads: u32,
    /// Turns of loops that a step along k takes.
    pub turns: u32,
    /// k may be divided among workgroups.
    pub divided: bool,
    /// Cycles of a step along k at least, whatever else the unit does: memory answers after that.
    pub latency: f64,
    /// Cycles of a workgroup before and after its loop.
    pub around: f64,
}

/// Into how many parts k may be divided among workgroups that do such work.
fn splits(limits: &Limits, [batch, m, n, k]: [i64; 4], work: Work) -> SmallVec<[u32; 16]> {
    if !work.divided {
        return smallvec![1];
    }
    let step = work.size[2];
    if limits.software {
        let steps = (SOFTWARE_TURNS / u64::from(work.turns)).max(1);
        return smallvec![(k as u64).div_ceil(steps * u64::from(step)).max(1) as u32];
    }
    let allowed = |&parts: &u32| {
        let long = i64::from(parts) * i64::from(step) * 4 <= k && batch * m * n * i64::from(parts) <= MOST_PARTIAL_SUMS;
        parts == 1 || (long && batch * i64::from(parts) <= MAX_GROUPS as i64)
    };
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64].into_iter().take_while(allowed).collect()
}

/// Sums of parts of k at most: they take memory.
const MOST_PARTIAL_SUMS: i64 = 1 << 25;

/// The tile of the least estimated time for `size = [batch, m, n, k]`, of tiles with their work and
/// their rates: that time, the tile, and the parts of k.
pub fn fastest<T: Copy>(
    limits: &Limits,
    size: [i64; 4],
    tiles: impl Iterator<Item = (T, Work, f64)>,
) -> Option<(f64, T, u32)> {
    rated_of(limits, size, tiles).reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// The estimated times of tiles with their work and their rates, for each number of parts that k
/// may be divided into.
pub fn rated_of<T: Copy>(
    limits: &Limits,
    size: [i64; 4],
    tiles: impl Iterator<Item = (T, Work, f64)>,
) -> impl Iterator<Item = (f64, T, u32)> {
    tiles.flat_map(move |(tile, work, rate)| {
        splits(limits, size, work)
            .into_iter()
            .map(move |parts| (estimate(limits, work, rate, size, parts), tile, parts))
    })
}

/// The tile for `size = [batch, m, n, k]`, computed in elements of `bytes` bytes, and the estimate
/// of its time; `b_along_k`: the second operand is contiguous along k.
pub fn choose(limits: &Limits, size: [i64; 4], bytes: u32, b_along_k: bool) -> (f64, Choice) {
    choose_within(limits, size, bytes, b_along_k, [u32::MAX; 2])
}

/// The estimate for a tile of the table and its parts of k, where operands are rounded as they are
/// read; see [`choose`].
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

/// [`choose`] where k stays whole, of which a software adapter cannot take any length.
pub fn choose_undivided(limits: &Limits, size: [i64; 4], bytes: u32, b_along_k: bool) -> Option<Tile> {
    let whole = rated(limits, size, bytes, b_along_k).filter(|&(.., parts)| parts == 1);
    whole.min_by(|x, y| x.0.total_cmp(&y.0)).map(|(_, tile, _)| tile)
}

/// [`choose`] among tiles of at most so many rows and columns.
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

/// Every tile that fits and its parts of k, with the estimate of its time; see [`choose`].
pub fn rated(limits: &Limits, size: [i64; 4], bytes: u32, b_along_k: bool) -> impl Iterator<Item = (f64, Tile, u32)> {
    rated_of(limits, size, entries(limits, bytes, b_along_k))
}

/// The tiles of the table that fit, with their work and their rates.
pub fn entries(limits: &Limits, bytes: u32, b_along_k: bool) -> impl Iterator<Item = (Tile, Work, f64)> {
    let table = if limits.software { SOFTWARE } else { GPU };
    table.iter().filter(move |e| limits.allow(&e.tile, bytes)).map(move |e| {
        let size = [e.tile.m, e.tile.n, e.tile.k];
        let work = Work { size, threads: e.tile.threads(), turns: 1, divided: true, latency: 600.0, around: 1_500.0 };
        (e.tile, work, if b_along_k { e.rate_along_k } else { e.rate })
    })
}

/// A launch that waits for the one before.
const NEXT_LAUNCH: f64 = 5_000.0;

/// Clock cycles, roughly, of a unit that multiplies and adds 128 times a cycle.
pub fn estimate(limits: &Limits, work: Work, rate: f64, [batch, m, n, k]: [i64; 4], split_k: u32) -> f64 {
    let Work { size: [tile_m, tile_n, tile_k], latency, around, .. } = work;
    let ceil = |x: i64, y: u32| (x as f64 / f64::from(y)).ceil();
    let groups = ceil(m, tile_m) * ceil(n, tile_n) * batch as f64 * f64::from(split_k);
    if limits.software {
        // A core runs one workgroup after another; the padding of a tile costs as much as the rest.
        return (groups / limits.units).ceil() * (f64::from(tile_m * tile_n) * k as f64 / rate + around);
    }
    // Workgroups that run at the same time share the unit, and hide what the others wait for; the
    // last round has fewer of them.
    let resident = resident(work);
    let full = (groups / (limits.units * resident)).floor();
    let last = ((groups - full * limits.units * resident) / limits.units).ceil();
    let step = f64::from(tile_m * tile_n * tile_k) / 128.0 / rate;
    let round = |workgroups: f64| (step * workgroups).max(latency);
    let each_step = full * round(resident) + if last > 0.0 { round(last) } else { 0.0 };
    let rounds = full + last.min(1.0);
    let steps = (k as f64 / f64::from(split_k) / f64::from(tile_k)).ceil();
    let sums = (batch * m * n) as f64 * f64::from(split_k);
    let second = if split_k > 1 { limits.passes(1, 8.0 * sums) } else { 0.0 };
    steps * each_step + rounds * around + second
}

/// Workgroups that run on a unit at the same time: what 65,536 registers hold, two for each sum of
/// an invocation.
pub fn resident(work: Work) -> f64 {
    let Work { size: [tile_m, tile_n, _], threads, .. } = work;
    let registers = (2 * tile_m * tile_n / threads).clamp(32, 255);
    f64::from(65_536 / (registers * threads)).max(1.0)
}

/// Every tile of the tables, for tests and benchmarks.
pub fn tiles() -> impl Iterator<Item = Tile> {
    GPU.iter().chain(SOFTWARE).map(|e| e.tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn limits(shared_memory: u32, invocations: u32) -> Limits {
        Limits { shared_memory, invocations, ..Limits::LARGE }
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
