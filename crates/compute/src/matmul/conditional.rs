//! Products that are computed depending on a flag on the device, as a fallback for another
//! algorithm that is not accurate for all operands.
//!
//! Whatever finds such an operand sets a flag, in the form of [`guard`](super::guard). The product
//! is enqueued in any case, so that the host does not wait, and its workgroups return if neither
//! flag is set.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matmul::guard::{Blocks, Tiles};
use crate::matmul::operand::Axis;
use crate::matmul::problem::{Problem, TileSelection};
use crate::matmul::select::{self, Choice, Limits};
use dml_engine::AddressRange;

impl Problem {
    /// Enqueues the product without matrix units, to be computed if at least one of two 32-bit
    /// words is [`FLAG_LOST`](crate::matmul::guard::FLAG_LOST).
    ///
    /// # Errors
    /// If k is longer than a software adapter can iterate over in one launch ([`is_conditional`]).
    pub fn run_if_lost(&mut self, cx: &Context, words: [AddressRange; 2]) -> Result<()> {
        self.swap_operands_if_better();
        let limits = self.limits_of_loads(Limits::of(cx.device.info()));
        let bytes = self.a.access.dtype.compute().bytes();
        let along_k = self.b.access.axis == Axis::Inner;
        let tile_below =
            |most_elements| select::choose_undivided(&Limits { most_elements, ..limits }, self.size, bytes, along_k);
        let Some(tile) = tile_below(u32::MAX) else {
            return Err(Error::Invalid(format!("{}: a product of {:?} cannot be conditional", cx.name, self.size)));
        };
        // All rows and columns are a single block.
        let blocks = words.map(|found| Blocks { found, batch: 0, size: 1 << 31 });
        let selection = TileSelection { tiles: Tiles::Unrepresentable, blocks };
        let run = |cx: &Context, tile| self.run_tiles(cx, Choice { tile, split_k: 1 }, Some(&selection));
        run(cx, cx.accepted(tile, |tile| tile_below(tile.m * tile.n - 1), run)?)
    }
}

/// Whether a product of float32 with this `[batch, m, n, k]` may be conditional.
pub fn is_conditional(limits: &Limits, size: [i64; 4]) -> bool {
    size.iter().all(|&n| n < i64::from(i32::MAX)) && select::choose_undivided(limits, size, 4, false).is_some()
}
