//! Pools other than the common one, and segments that must not be released.

use super::{Allocator, COMMON, Pool, Source};
use crate::memory::free_lists::NONE;

impl<S: Source> Allocator<S> {
    /// A new pool, empty.
    pub(crate) fn new_pool(&mut self) -> u32 {
        let new = Some(Pool::new());
        match self.pools.iter().position(Option::is_none) {
            Some(at) => {
                self.pools[at] = new;
                at as u32
            }
            None => {
                self.pools.push(new);
                self.pools.len() as u32 - 1
            }
        }
    }

    /// Ends a pool: its segments belong to the common one from now on, including blocks in use.
    pub(crate) fn end_pool(&mut self, pool: u32) {
        self.reclaim(pool);
        for slot in 0..self.segments.len() {
            let Some(state) = &self.segments[slot] else { continue };
            if state.pool != pool {
                continue;
            }
            let mut at = state.first;
            let mut free = Vec::new();
            while at != NONE {
                let block = &self.blocks[at];
                if block.free {
                    free.push(at);
                }
                at = block.next;
            }
            for &block in &free {
                self.unlist(block);
            }
            if let Some(state) = &mut self.segments[slot] {
                state.pool = COMMON;
            }
            for &block in &free {
                self.list(block);
            }
        }
        self.pools[pool as usize] = None;
    }

    /// The pool that contains an address.
    pub(crate) fn pool_of(&self, address: u64) -> Option<u32> {
        let slot = self.segment_at(address)?;
        self.segments[slot as usize].as_ref().map(|state| state.pool)
    }

    /// Keeps the segment of an address from being released until it is [unpinned](Self::unpin),
    /// once for each call. Returns the segment's number.
    pub(crate) fn pin(&mut self, address: u64) -> Option<u32> {
        let slot = self.segment_at(address)?;
        self.segments[slot as usize].as_mut()?.pins += 1;
        Some(slot)
    }

    /// Undoes one [`pin`](Self::pin).
    pub(crate) fn unpin(&mut self, slot: u32) {
        if let Some(state) = &mut self.segments[slot as usize] {
            state.pins -= 1;
        }
    }
}
