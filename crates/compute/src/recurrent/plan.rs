//! How a recurrence is divided into launches and workgroups, by its sizes.
//!
//! Sequences do not depend on each other, so a workgroup can loop over all steps of some sequences
//! without synchronising with others; it then reads the whole recurrent weight at each step. With
//! one launch a step, the weight is read with the whole device's bandwidth, at the cost of two
//! dependent launches: the product's and the cells'. So small weights are read by loops, and large
//! ones by a launch for each step.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::matmul::select::Limits;
use crate::primitives::loops::max_loop_iterations;
use crate::recurrent::row_product::Tile;
use dml_environment::{RECURRENCE, Recurrence};
use dml_kernel::{DType, dense};

/// Bandwidth in bytes a second at which one compute unit reads a matrix in the L2 cache (on an
/// H100: 64 a clock).
const UNIT_BANDWIDTH: f64 = 1e11;

/// Bandwidth at which all units together read it, as a multiple of one unit's: the cache is slower
/// than the sum of units.
const CACHE_BANDWIDTH: f64 = 55.0;

/// 32-bit registers of an invocation on a large adapter for its accumulators and its part of the
/// matrix.
const REGISTERS: u32 = 72;

/// Multiplications and additions of one compute unit in a second, for vectors times a matrix.
const UNIT_RATE: f64 = 1e11;

/// Time of a step of the loop without the product, in seconds: barriers, and the cells.
const STEP: f64 = 1e-6;

/// Time of the launches of a step, in seconds.
const LAUNCH_SECONDS: f64 = 6e-6;

/// Maximum number of multiplications of one launch, and of one of its workgroups: some tens of
/// milliseconds on a small adapter.
const MAX_LAUNCH_MULTIPLICATIONS: u64 = 1 << 31;

const MAX_WORKGROUP_MULTIPLICATIONS: u64 = 1 << 28;

/// Maximum number of steps of one launch, whose positions are launch arguments.
const STEPS: u64 = 2048;

/// Invocations of a workgroup that reads more than it computes.
const THREADS: u32 = 512;

/// The same on a software adapter.
const SOFTWARE_THREADS: u32 = 64;

/// A recurrence in which workgroups loop over steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The sequences of a workgroup, and the shape of its product.
    pub tile: Tile,
    /// Maximum number of steps of a launch.
    pub steps: usize,
}

/// How workgroups loop over the steps of `batch` sequences. The product of a step is with a
/// `[k, n]` matrix of a dtype at an address. `None` if a launch for each step is faster.
pub fn plan(cx: &Context, batch: u32, [k, n]: [u32; 2], dtype: DType, address: u64) -> Option<Loop> {
    let limits = Limits::of(cx.device.info());
    let tile = choose(&limits, batch, [k, n], dtype, address, RECURRENCE.get())?;
    let macs = u64::from(k) * u64::from(n);
    let work = (MAX_LAUNCH_MULTIPLICATIONS / (u64::from(batch) * macs))
        .min(MAX_WORKGROUP_MULTIPLICATIONS / (u64::from(tile.rows) * macs));
    let allowed =
        max_loop_iterations(cx).map_or(STEPS, |iterations| iterations as u64 / u64::from(tile.loop_iterations() + 1));
    Some(Loop { tile, steps: work.min(allowed).clamp(1, STEPS) as usize })
}

fn choose(
    limits: &Limits,
    batch: u32,
    [k, n]: [u32; 2],
    dtype: DType,
    address: u64,
    forced: Option<Recurrence>,
) -> Option<Tile> {
    let width = [4, 2].into_iter().find(|&w| n % w == 0 && address.is_multiple_of(u64::from(w) * dtype.bytes()));
    let width = width.unwrap_or(1);
    let threads = (n / width).saturating_mul((k / 4).max(1)).next_multiple_of(32);
    let most = if limits.software { SOFTWARE_THREADS } else { THREADS };
    let threads = threads.min(most).min(limits.invocations);
    let macs = f64::from(k) * f64::from(n);
    let read = macs * dtype.bytes() as f64 / UNIT_BANDWIDTH;
    let seconds = |tile: &Tile| {
        let groups = f64::from(batch.div_ceil(tile.rows));
        let read = read * (groups.min(limits.compute_units) / CACHE_BANDWIDTH).max(1.0);
        let waves = (groups / limits.compute_units).ceil();
        waves * (read.max(f64::from(tile.rows) * macs / UNIT_RATE) + STEP)
    };
    let launched = match forced {
        None => LAUNCH_SECONDS + f64::from(batch) * macs / (UNIT_RATE * limits.compute_units),
        Some(Recurrence::Loop) => f64::INFINITY,
        Some(Recurrence::Steps) => 0.0,
    };
    let bytes = accumulator(dtype).bytes() as u32;
    // A software adapter's registers are memory: there this is only for tests.
    let many = limits.software || limits.compute_units >= 48.0;
    let registers = if many { REGISTERS * 4 / bytes } else { 0 };
    let register_vectors = |rows: u32| registers.saturating_sub(rows * width) / (4 * width);
    let tiles = [1, 2, 4, 8].map(|rows| Tile { threads, rows, k, n, width, register_vectors: register_vectors(rows) });
    tiles
        .into_iter()
        .filter(|tile| tile.shared_bytes(bytes) <= limits.shared_memory && seconds(tile) < launched)
        .min_by(|x, y| seconds(x).total_cmp(&seconds(y)))
}

impl Loop {
    /// The number of workgroups.
    pub fn groups(&self, batch: u32) -> [u32; 3] {
        dense::folded(u64::from(batch.div_ceil(self.tile.rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Limits = Limits::LARGE_GPU;
    const SMALL_ADAPTER: Limits =
        Limits { shared_memory: 16 << 10, invocations: 128, compute_units: 12.0, ..Limits::LARGE_GPU };

    #[test]
    fn small_weights_are_read_by_loops() {
        let tile = |limits, batch, hidden: u32, dtype| choose(limits, batch, [hidden, 4 * hidden], dtype, 0, None);
        assert_eq!(tile(&H100, 64, 128, DType::F32).map(|tile| (tile.rows, tile.threads)), Some((2, 512)));
        assert!(tile(&H100, 64, 512, DType::F32).is_none());
        assert!(tile(&H100, 64, 160, DType::F16).is_some());
    }

    #[test]
    fn tiles_fit_into_small_adapters() {
        for hidden in 1..200 {
            for [k, n] in [[hidden, 4 * hidden], [4 * hidden, hidden]] {
                for (batch, dtype) in [(1, DType::F64), (64, DType::F32), (1000, DType::F16)] {
                    let found = choose(&SMALL_ADAPTER, batch, [k, n], dtype, 0, Some(Recurrence::Loop));
                    let Some(tile) = found else { continue };
                    assert!(tile.shared_bytes(accumulator(dtype).bytes() as u32) <= SMALL_ADAPTER.shared_memory);
                    assert!(tile.threads <= SMALL_ADAPTER.invocations && n % tile.width == 0);
                }
            }
        }
    }
}
