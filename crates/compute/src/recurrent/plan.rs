//! How a recurrence is cut up: into launches and workgroups, by its sizes.
//!
//! A workgroup that loops over all steps reads the whole recurrent weight at each of them, and
//! needs no other: sequences do not depend on each other. A launch a step has the device's whole
//! bandwidth for it, and costs two dependent launches: the product's and the cells'. So small
//! weights are read by loops, and large ones a launch at a time.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::matmul::select::Limits;
use crate::primitives::loops::turns_allowed;
use crate::recurrent::row_product::Tile;
use dml_environment::{RECURRENCE, Recurrence};
use dml_kernel::{DType, dense};

/// What one compute unit reads of a matrix that lies in the cache of all, in bytes a second (of an
/// H100: 64 a clock).
const UNIT_BANDWIDTH: f64 = 1e11;

/// What all units read of it, in those of one: the cache has less than all could take.
const CACHE_BANDWIDTH: f64 = 55.0;

/// 32-bit registers that an invocation of a large adapter has for its sums and for the part of the
/// matrix that it holds.
const REGISTERS: u32 = 72;

/// Multiplications and additions of one compute unit in a second, of vectors times a matrix.
const UNIT_RATE: f64 = 1e11;

/// What a step of the loop takes beside the product, in seconds: barriers, and the cells.
const STEP: f64 = 1e-6;

/// What the launches of a step take, in seconds.
const LAUNCHES: f64 = 6e-6;

/// Most multiplications of one launch, and of one of its workgroups: some tens of milliseconds on a
/// small adapter.
const MOST: u64 = 1 << 31;

const MOST_OF_GROUP: u64 = 1 << 28;

/// Most steps of one launch, whose places travel with it.
const STEPS: u64 = 2048;

/// Invocations of a workgroup, of those that read more than they compute.
const THREADS: u32 = 512;

/// The same on a software adapter.
const SOFTWARE_THREADS: u32 = 64;

/// A recurrence in which workgroups loop over steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// A workgroup's sequences, and how it multiplies them.
    pub tile: Tile,
    /// Most steps of a launch.
    pub steps: usize,
}

/// How workgroups loop over the steps of `batch` sequences whose product, of a `[k, n]` matrix at
/// an address, is of a dtype; `None` where a launch a step is faster.
pub fn plan(cx: &Context, batch: u32, [k, n]: [u32; 2], dtype: DType, address: u64) -> Option<Loop> {
    let limits = Limits::of(cx.device.info());
    let tile = choose(&limits, batch, [k, n], dtype, address, RECURRENCE.get())?;
    let macs = u64::from(k) * u64::from(n);
    let work = (MOST / (u64::from(batch) * macs)).min(MOST_OF_GROUP / (u64::from(tile.rows) * macs));
    let turns = turns_allowed(cx).map_or(STEPS, |turns| turns as u64 / u64::from(tile.turns() + 1));
    Some(Loop { tile, steps: work.min(turns).clamp(1, STEPS) as usize })
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
        let read = read * (groups.min(limits.units) / CACHE_BANDWIDTH).max(1.0);
        let waves = (groups / limits.units).ceil();
        waves * (read.max(f64::from(tile.rows) * macs / UNIT_RATE) + STEP)
    };
    let launched = match forced {
        None => LAUNCHES + f64::from(batch) * macs / (UNIT_RATE * limits.units),
        Some(Recurrence::Loop) => f64::INFINITY,
        Some(Recurrence::Steps) => 0.0,
    };
    let bytes = accumulator(dtype).bytes() as u32;
    // A software adapter's are memory: there it is for tests alone.
    let many = limits.software || limits.units >= 48.0;
    let registers = if many { REGISTERS * 4 / bytes } else { 0 };
    let held = |rows: u32| registers.saturating_sub(rows * width) / (4 * width);
    let tiles = [1, 2, 4, 8].map(|rows| Tile { threads, rows, k, n, width, held: held(rows) });
    tiles
        .into_iter()
        .filter(|tile| tile.shared_bytes(bytes) <= limits.shared_memory && seconds(tile) < launched)
        .min_by(|x, y| seconds(x).total_cmp(&seconds(y)))
}

impl Loop {
    /// The workgroups.
    pub fn groups(&self, batch: u32) -> [u32; 3] {
        dense::folded(u64::from(batch.div_ceil(self.tile.rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Limits = Limits::LARGE;
    const SMALL: Limits = Limits { shared_memory: 16 << 10, invocations: 128, units: 12.0, ..Limits::LARGE };

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
                    let found = choose(&SMALL, batch, [k, n], dtype, 0, Some(Recurrence::Loop));
                    let Some(tile) = found else { continue };
                    assert!(tile.shared_bytes(accumulator(dtype).bytes() as u32) <= SMALL.shared_memory);
                    assert!(tile.threads <= SMALL.invocations && n % tile.width == 0);
                }
            }
        }
    }
}
