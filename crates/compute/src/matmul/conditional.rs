//! Products of which only the device knows whether they are wanted: one that another way computes
//! too, but not for all operands.
//!
//! Whatever finds such an operand sets a word, as [`guard`](super::guard) has them. The product is
//! enqueued in any case, the host waits for nothing, and its workgroups return where neither word
//! is set.

pub use crate::matmul::guard::LOST;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matmul::guard::{Blocks, Tiles};
use crate::matmul::operand::Axis;
use crate::matmul::problem::{Guarded, Problem};
use crate::matmul::select::{self, Choice, Limits};
use dml_engine::AddressRange;

impl Problem {
    /// Enqueues it in plain tiles, which are computed where at least one of two words, of 32 bits
    /// each, is [`LOST`].
    ///
    /// # Errors
    /// Where k is longer than a software adapter can walk in one launch ([`is_conditional`]).
    pub fn run_where_lost(&mut self, cx: &Context, words: [AddressRange; 2]) -> Result<()> {
        self.orient();
        let (limits, bytes) = (Limits::of(cx.device.info()), self.a.access.dtype.compute().bytes());
        let tile = select::choose_undivided(&limits, self.size, bytes, self.b.access.axis == Axis::Inner);
        let Some(tile) = tile else {
            return Err(Error::Invalid(format!("{}: a product of {:?} cannot be conditional", cx.name, self.size)));
        };
        // All rows and columns are one block.
        let blocks = words.map(|found| Blocks { found, batch: 0, size: 1 << 31 });
        self.run_tiles(cx, Choice { tile, split_k: 1 }, Some(&Guarded { tiles: Tiles::Others, blocks }))
    }
}

/// Whether a product of so many elements, `[batch, m, n, k]` of float32, may be conditional.
pub fn is_conditional(limits: &Limits, size: [i64; 4]) -> bool {
    size.iter().all(|&n| n < i64::from(i32::MAX)) && select::choose_undivided(limits, size, 4, false).is_some()
}
