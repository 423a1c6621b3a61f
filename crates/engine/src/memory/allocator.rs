//! The caching allocator: blocks of large segments, split and merged, cached when freed.
//!
//! Sizes are rounded to 512 bytes. Blocks up to 1 MiB come from segments of 2 MiB, blocks below 10
//! MiB from segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. The
//! smallest free block that fits is taken and split if the remainder is large enough; free
//! neighbours merge. Other frameworks' allocators have the same sizes, so that programs tuned for
//! them behave alike.
//!
//! A freed block can be handed out again at once: work runs in the order of its enqueuing, and the
//! queue records a barrier where addresses overlap. But a barrier costs the GPU 2 µs, so the free
//! of a small block while work is pending is deferred until that work is submitted, or until the
//! block is needed. Independent operators of one batch then write to different addresses, and
//! within a batch the address of a small block has one meaning.
//!
//! Segments belong to pools, and a freed block goes back to its segment's pool. Pool 0 is the
//! common one; others belong to graphs ([`crate::Graph`]), and their segments move to pool 0 when
//! their last graph is dropped.

mod blocks;
mod lookup;
mod pools;
#[cfg(test)]
mod tests;

use crate::memory::allocator::blocks::{Block, Blocks};
use crate::memory::free_lists::{Bins, NONE, Sorted};
use crate::memory::statistics::MemoryStats;
use rustc_hash::FxHashMap;

const MIB: u64 = 1 << 20;
/// All sizes, and all offsets in a segment, are multiples of this.
pub(crate) const GRAIN: u64 = Bins::GRAIN;
const SMALL_LIMIT: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const LARGE_LIMIT: u64 = 10 * MIB;
const SEGMENT_GRAIN: u64 = 2 * MIB;
/// The free of blocks up to this size may be deferred. Larger blocks are better reused while a
/// cache still holds them.
const MAX_DEFERRED: u64 = 256 << 10;
/// A large block is split if more than this remains.
const LARGE_REMAINDER: u64 = MIB;

/// A source of segments.
pub(crate) trait Source {
    /// Memory that is returned when it is dropped.
    type Segment;
    /// The reason of a failed allocation.
    type Error;
    /// A new segment of `bytes` bytes.
    fn allocate(&self, bytes: u64) -> Result<Self::Segment, Self::Error>;
    /// The address of a segment's first byte.
    fn address(segment: &Self::Segment) -> u64;
}

/// A segment, and the use that is made of it.
#[derive(Debug)]
struct SegmentState<S> {
    segment: S,
    address: u64,
    bytes: u64,
    /// Whether it is for small blocks.
    small: bool,
    /// Its first block.
    first: u32,
    pool: u32,
    /// The number of graphs whose commands name its addresses: the segment is not released while
    /// there are any.
    pins: u32,
}

/// The pool of all blocks that belong to no graph.
pub(crate) const COMMON: u32 = 0;

/// The free blocks of a pool.
#[derive(Debug)]
struct Pool {
    small: Bins,
    large: Sorted,
    /// Freed blocks that are not in the lists yet.
    deferred: Vec<u32>,
}

impl Pool {
    fn new() -> Self {
        Self { small: Bins::new(), large: Sorted::default(), deferred: Vec::new() }
    }
}

/// Blocks of the segments of a source.
pub(crate) struct Allocator<S: Source> {
    source: S,
    /// The most bytes to reserve from the source.
    limit: u64,
    blocks: Blocks,
    segments: Vec<Option<SegmentState<S::Segment>>>,
    unused_segments: Vec<u32>,
    /// (address, segment), sorted.
    by_base: Vec<(u64, u32)>,
    /// Blocks in use.
    in_use: FxHashMap<u64, u32>,
    /// By number; `None` for a free number.
    pools: Vec<Option<Pool>>,
    stats: MemoryStats,
}

/// The reason why the cache could not grow.
#[derive(Debug)]
pub(crate) enum GrowError<E> {
    /// More than the reservation limit allows.
    Limit,
    Source(E),
}

fn round(bytes: u64) -> u64 {
    bytes.div_ceil(GRAIN) * GRAIN
}

impl<S: Source> Allocator<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            limit: u64::MAX,
            blocks: Blocks::default(),
            segments: Vec::new(),
            unused_segments: Vec::new(),
            by_base: Vec::new(),
            in_use: FxHashMap::default(),
            pools: vec![Some(Pool::new())],
            stats: MemoryStats::default(),
        }
    }

    /// Where the segments come from.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// The most bytes to reserve from the source.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Limits the bytes that are reserved from the source from now on; it releases none.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// A block from a pool's cache, if there is one that fits. `requested` is not 0.
    #[inline]
    pub(crate) fn take(&mut self, pool: u32, requested: u64) -> Option<u64> {
        self.try_take(pool, requested).or_else(|| {
            if self.pool(pool)?.deferred.is_empty() {
                return None;
            }
            self.reclaim(pool);
            self.try_take(pool, requested)
        })
    }

    fn try_take(&mut self, pool: u32, requested: u64) -> Option<u64> {
        let bytes = round(requested);
        let small = bytes <= SMALL_LIMIT;
        let free = self.pool(pool)?;
        let block = if small { free.small.find(bytes)? } else { free.large.find(bytes)? };
        Some(self.use_block(block, bytes, requested, small))
    }

    fn pool(&mut self, pool: u32) -> Option<&mut Pool> {
        self.pools.get_mut(pool as usize)?.as_mut()
    }

    /// Adds a segment to a pool that a block of `requested` bytes fits into, and takes the block.
    /// With `modest`, the segment is no larger than needed.
    pub(crate) fn grow(&mut self, pool: u32, requested: u64, modest: bool) -> Result<u64, GrowError<S::Error>> {
        let bytes = round(requested);
        let small = bytes <= SMALL_LIMIT;
        let segment_bytes = if small {
            SMALL_SEGMENT
        } else if modest {
            bytes
        } else if bytes < LARGE_LIMIT {
            LARGE_SEGMENT
        } else {
            bytes.div_ceil(SEGMENT_GRAIN) * SEGMENT_GRAIN
        };
        if self.reserved().saturating_add(segment_bytes) > self.limit {
            return Err(GrowError::Limit);
        }
        let segment = self.source.allocate(segment_bytes).map_err(GrowError::Source)?;
        let address = S::address(&segment);
        let slot = self.unused_segments.pop().unwrap_or_else(|| {
            self.segments.push(None);
            self.segments.len() as u32 - 1
        });
        let block = self.blocks.of_segment(slot, address, segment_bytes);
        self.segments[slot as usize] =
            Some(SegmentState { segment, address, bytes: segment_bytes, small, first: block, pool, pins: 0 });
        let at = self.by_base.partition_point(|b| b.0 < address);
        self.by_base.insert(at, (address, slot));
        self.list(block);
        self.stats.each(small, |p| {
            p.reserved_bytes.increase(segment_bytes);
            p.segments.increase(1);
        });
        Ok(self.use_block(block, bytes, requested, small))
    }

    /// Returns a block to its pool's cache; with `defer`, a small block only at
    /// [`reclaim`](Self::reclaim) or when an allocation needs it. False if no block in use starts
    /// there.
    pub(crate) fn free(&mut self, address: u64, defer: bool) -> bool {
        let Some(block) = self.in_use.remove(&address) else {
            return false;
        };
        let b = &mut self.blocks[block];
        let Block { bytes, requested, segment, .. } = *b;
        b.requested = 0;
        let (small, pool) = self.kind(segment);
        self.stats.each(small, |p| {
            p.allocated_bytes.decrease(bytes);
            p.requested_bytes.decrease(requested);
            p.allocations.decrease(1);
        });
        match self.pool(pool) {
            Some(pool) if defer && bytes <= MAX_DEFERRED => pool.deferred.push(block),
            _ => self.merge(block),
        }
        true
    }

    /// Carries out a pool's deferred frees: the blocks are available again.
    pub(crate) fn reclaim(&mut self, pool: u32) {
        // In reverse order, so that a run of neighbours grows into the free block behind it; the
        // grown block is listed at its end.
        let mut grown = NONE;
        while let Some(block) = self.pool(pool).and_then(|pool| pool.deferred.pop()) {
            if grown != NONE && grown != self.blocks[block].next {
                self.list(grown);
                grown = NONE;
            }
            grown = self.merge_neighbours(block, grown);
        }
        if grown != NONE {
            self.list(grown);
        }
    }

    /// Lists a freed block, merged with its free neighbours.
    fn merge(&mut self, block: u32) {
        let merged = self.merge_neighbours(block, NONE);
        self.list(merged);
    }

    /// A freed block merged with its free neighbours. All of them are listed, except perhaps the
    /// `unlisted` one behind it. The result is not listed.
    fn merge_neighbours(&mut self, block: u32, unlisted: u32) -> u32 {
        let b = &mut self.blocks[block];
        b.free = true;
        let (prev, next) = (b.prev, b.next);
        if next != NONE && self.blocks[next].free {
            if next != unlisted {
                self.unlist(next);
            }
            self.blocks.absorb_next(block, next);
        }
        if prev != NONE && self.blocks[prev].free {
            self.unlist(prev);
            self.blocks.absorb_next(prev, block);
            return prev;
        }
        block
    }

    /// Removes the common pool's segments that contain no block in use and are not pinned. The
    /// caller ensures that the GPU is done with them.
    pub(crate) fn release(&mut self) -> Vec<S::Segment> {
        self.reclaim(COMMON);
        let mut released = Vec::new();
        for slot in 0..self.segments.len() {
            let Some(state) = &self.segments[slot] else { continue };
            let first = state.first;
            let block = &self.blocks[first];
            if !block.free || block.bytes != state.bytes || state.pool != COMMON || state.pins > 0 {
                continue;
            }
            let small = state.small;
            self.unlist(first);
            self.blocks.remove(first);
            if let Some(state) = self.segments[slot].take() {
                self.by_base.retain(|b| b.1 != slot as u32);
                self.unused_segments.push(slot as u32);
                self.stats.each(small, |p| {
                    p.reserved_bytes.decrease(state.bytes);
                    p.segments.decrease(1);
                });
                released.push(state.segment);
            }
        }
        released
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.stats.all.reserved_bytes.current
    }

    pub(crate) fn stats_mut(&mut self) -> &mut MemoryStats {
        &mut self.stats
    }

    fn segment_at(&self, address: u64) -> Option<u32> {
        let at = self.by_base.partition_point(|b| b.0 <= address).checked_sub(1)?;
        let slot = self.by_base[at].1;
        let state = self.segments[slot as usize].as_ref()?;
        (address - state.address < state.bytes).then_some(slot)
    }

    /// Whether a segment is for small blocks, and its pool.
    fn kind(&self, segment: u32) -> (bool, u32) {
        self.segments[segment as usize].as_ref().map_or((false, COMMON), |state| (state.small, state.pool))
    }

    /// Marks a listed block as used, and splits off the remainder.
    fn use_block(&mut self, block: u32, bytes: u64, requested: u64, small: bool) -> u64 {
        self.unlist(block);
        let b = &mut self.blocks[block];
        b.free = false;
        b.requested = requested;
        let (address, rest) = (b.address, b.bytes - bytes);
        let split = if small { rest >= GRAIN } else { rest > LARGE_REMAINDER };
        if split {
            let tail = self.blocks.split(block, bytes);
            self.list(tail);
        }
        let taken = self.blocks[block].bytes;
        self.in_use.insert(address, block);
        self.stats.each(small, |p| {
            p.allocated_bytes.increase(taken);
            p.requested_bytes.increase(requested);
            p.allocations.increase(1);
        });
        address
    }

    fn list(&mut self, block: u32) {
        let Block { bytes, address, segment, .. } = self.blocks[block];
        let (small, pool) = self.kind(segment);
        let Some(free) = self.pool(pool) else { return };
        if small {
            free.small.insert(bytes, block);
        } else {
            free.large.insert(bytes, address, block);
        }
    }

    fn unlist(&mut self, block: u32) {
        let Block { bytes, address, segment, .. } = self.blocks[block];
        let (small, pool) = self.kind(segment);
        let Some(free) = self.pool(pool) else { return };
        if small {
            free.small.remove(bytes, block);
        } else {
            free.large.remove(bytes, address);
        }
    }
}
