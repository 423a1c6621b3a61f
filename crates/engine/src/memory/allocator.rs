//! The caching allocator: blocks of large segments, split and merged, kept when freed.
//!
//! Sizes are rounded to 512 bytes. Blocks up to 1 MiB come from segments of 2 MiB, blocks below 10 MiB
//! from segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. The smallest
//! free block that fits is taken; what it has too much becomes a free block if that is worth it;
//! free neighbours merge. These are the rules of PyTorch's CUDA allocator, so that programs
//! tuned for it behave alike.
//!
//! A freed block can be handed out again at once: work is executed in the order of its enqueuing, and
//! the queue puts a barrier where addresses overlap. But a barrier costs the GPU 2 µs, so small blocks that are
//! freed while work is pending rest until that work is submitted, or until they are needed. Independent operators
//! of one batch then write to different addresses, and no address of a small block means two things within a batch.
//!
//! Segments belong to pools, and a freed block goes back to its segment's pool. Pool 0 is everybody's; others belong to graphs
//! ([`crate::Graph`]), and are emptied into pool 0 when their last graph goes.

use crate::memory::free_lists::{Bins, NONE, Sorted};
use crate::memory::statistics::{BlockInfo, MemoryStats, SegmentInfo};
use rustc_hash::FxHashMap;

const MIB: u64 = 1 << 20;
/// Every size is a multiple of this, and every address of the segment's own alignment.
pub(crate) const GRAIN: u64 = Bins::GRAIN;
const SMALL_LIMIT: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const LARGE_LIMIT: u64 = 10 * MIB;
const SEGMENT_GRAIN: u64 = 2 * MIB;
/// Freed blocks up to this size may rest. Larger ones are better reused while a cache still holds them.
const REST_LIMIT: u64 = 256 << 10;
/// A large block is split if more than this remains.
const LARGE_REMAINDER: u64 = MIB;

/// Where segments come from.
pub(crate) trait Source {
    type Segment;
    type Error;
    fn allocate(&self, bytes: u64) -> Result<Self::Segment, Self::Error>;
    fn address(segment: &Self::Segment) -> u64;
}

#[derive(Clone, Debug)]
struct Block {
    address: u64,
    bytes: u64,
    /// Bytes asked for; 0 when not in use.
    requested: u64,
    segment: u32,
    /// Neighbours in the segment.
    prev: u32,
    next: u32,
    /// In the lists of free blocks.
    free: bool,
}

#[derive(Debug)]
struct Held<S> {
    segment: S,
    address: u64,
    bytes: u64,
    small: bool,
    first: u32,
    pool: u32,
    /// Graphs whose commands name its addresses: it is not released while there are any.
    pins: u32,
}

/// The pool of all that belongs to no graph.
pub(crate) const COMMON: u32 = 0;

/// The free blocks of a pool.
#[derive(Debug)]
struct Pool {
    small: Bins,
    large: Sorted,
    /// Freed blocks that are not in the lists yet.
    resting: Vec<u32>,
}

impl Pool {
    fn new() -> Self {
        Self { small: Bins::new(), large: Sorted::default(), resting: Vec::new() }
    }
}

/// Blocks of segments of type `S`.
#[derive(Debug)]
pub(crate) struct Allocator<S> {
    blocks: Vec<Block>,
    unused_blocks: Vec<u32>,
    segments: Vec<Option<Held<S>>>,
    unused_segments: Vec<u32>,
    /// (address, segment), sorted.
    by_base: Vec<(u64, u32)>,
    /// Blocks in use.
    in_use: FxHashMap<u64, u32>,
    /// By number; `None` for a number that is free.
    pools: Vec<Option<Pool>>,
    stats: MemoryStats,
}

/// Why the cache could not grow.
#[derive(Debug)]
pub(crate) enum GrowError<E> {
    /// More than the reservation limit allows.
    Limit,
    Source(E),
}

fn round(bytes: u64) -> u64 {
    bytes.div_ceil(GRAIN) * GRAIN
}

impl<S> Allocator<S> {
    pub(crate) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            unused_blocks: Vec::new(),
            segments: Vec::new(),
            unused_segments: Vec::new(),
            by_base: Vec::new(),
            in_use: FxHashMap::default(),
            pools: vec![Some(Pool::new())],
            stats: MemoryStats::default(),
        }
    }

    /// A block from a pool's cache, if there is one that fits. `requested` is not 0.
    #[inline]
    pub(crate) fn take(&mut self, pool: u32, requested: u64) -> Option<u64> {
        self.try_take(pool, requested).or_else(|| {
            if self.pool(pool)?.resting.is_empty() {
                return None;
            }
            self.recycle(pool);
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

    /// Ends a pool: its segments belong to the common one from now on, blocks in use included.
    pub(crate) fn end_pool(&mut self, pool: u32) {
        self.recycle(pool);
        for slot in 0..self.segments.len() {
            let Some(held) = &self.segments[slot] else { continue };
            if held.pool != pool {
                continue;
            }
            let mut at = held.first;
            let mut free = Vec::new();
            while at != NONE {
                let block = &self.blocks[at as usize];
                if block.free {
                    free.push(at);
                }
                at = block.next;
            }
            for &block in &free {
                self.unlist(block);
            }
            if let Some(held) = &mut self.segments[slot] {
                held.pool = COMMON;
            }
            for &block in &free {
                self.list(block);
            }
        }
        self.pools[pool as usize] = None;
    }

    /// The pool that an address belongs to.
    pub(crate) fn pool_of(&self, address: u64) -> Option<u32> {
        let slot = self.segment_at(address)?;
        self.segments[slot as usize].as_ref().map(|held| held.pool)
    }

    /// Keeps the segment of an address from being released until it is [unpinned](Self::unpin), once for each call.
    /// Returns the segment's number.
    pub(crate) fn pin(&mut self, address: u64) -> Option<u32> {
        let slot = self.segment_at(address)?;
        self.segments[slot as usize].as_mut()?.pins += 1;
        Some(slot)
    }

    /// Takes back one [`pin`](Self::pin).
    pub(crate) fn unpin(&mut self, slot: u32) {
        if let Some(held) = &mut self.segments[slot as usize] {
            held.pins -= 1;
        }
    }

    /// Adds a segment to a pool that a block of `requested` bytes fits into, and takes the block.
    /// `modest` asks the source for no more than needed. Reserves at most `limit` bytes in total.
    pub(crate) fn grow<F: Source<Segment = S>>(
        &mut self,
        source: &F,
        pool: u32,
        requested: u64,
        limit: u64,
        modest: bool,
    ) -> Result<u64, GrowError<F::Error>> {
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
        if self.reserved().saturating_add(segment_bytes) > limit {
            return Err(GrowError::Limit);
        }
        let segment = source.allocate(segment_bytes).map_err(GrowError::Source)?;
        let address = F::address(&segment);
        let slot = self.unused_segments.pop().unwrap_or_else(|| {
            self.segments.push(None);
            self.segments.len() as u32 - 1
        });
        let block = self.new_block(Block {
            address,
            bytes: segment_bytes,
            requested: 0,
            segment: slot,
            prev: NONE,
            next: NONE,
            free: true,
        });
        self.segments[slot as usize] =
            Some(Held { segment, address, bytes: segment_bytes, small, first: block, pool, pins: 0 });
        let at = self.by_base.partition_point(|b| b.0 < address);
        self.by_base.insert(at, (address, slot));
        self.list(block);
        self.stats.each(small, |p| {
            p.reserved_bytes.increase(segment_bytes);
            p.segments.increase(1);
        });
        Ok(self.use_block(block, bytes, requested, small))
    }

    /// Returns a block to its pool's cache; with `rest`, a small one not before [`recycle`](Self::recycle) or
    /// an allocation that needs it. False when no block in use starts there.
    pub(crate) fn free(&mut self, address: u64, rest: bool) -> bool {
        let Some(block) = self.in_use.remove(&address) else {
            return false;
        };
        let b = &mut self.blocks[block as usize];
        let Block { bytes, requested, segment, .. } = *b;
        b.requested = 0;
        let (small, pool) = self.kind(segment);
        self.stats.each(small, |p| {
            p.allocated_bytes.decrease(bytes);
            p.requested_bytes.decrease(requested);
            p.allocations.decrease(1);
        });
        match self.pool(pool) {
            Some(pool) if rest && bytes <= REST_LIMIT => pool.resting.push(block),
            _ => self.merge(block),
        }
        true
    }

    /// Makes the blocks of a pool that rest available.
    pub(crate) fn recycle(&mut self, pool: u32) {
        // Last first, so that a run of neighbours grows into the free block behind it; what grows is listed at its end.
        let mut grown = NONE;
        while let Some(block) = self.pool(pool).and_then(|pool| pool.resting.pop()) {
            if grown != NONE && grown != self.blocks[block as usize].next {
                self.list(grown);
                grown = NONE;
            }
            grown = self.join(block, grown);
        }
        if grown != NONE {
            self.list(grown);
        }
    }

    /// Lists a freed block, merged with its free neighbours.
    fn merge(&mut self, block: u32) {
        let merged = self.join(block, NONE);
        self.list(merged);
    }

    /// A freed block merged with its free neighbours, all of which are listed but perhaps the `unlisted` one behind it.
    /// The result is not listed.
    fn join(&mut self, block: u32, unlisted: u32) -> u32 {
        let b = &mut self.blocks[block as usize];
        b.free = true;
        let (prev, next) = (b.prev, b.next);
        if next != NONE && self.blocks[next as usize].free {
            if next != unlisted {
                self.unlist(next);
            }
            self.absorb_next(block, next);
        }
        if prev != NONE && self.blocks[prev as usize].free {
            self.unlist(prev);
            self.absorb_next(prev, block);
            return prev;
        }
        block
    }

    /// Removes the common pool's segments that hold no block in use and are not pinned. The caller sees to it that the GPU is done with them.
    pub(crate) fn release(&mut self) -> Vec<S> {
        self.recycle(COMMON);
        let mut released = Vec::new();
        for slot in 0..self.segments.len() {
            let Some(held) = &self.segments[slot] else { continue };
            let first = held.first;
            let block = &self.blocks[first as usize];
            if !block.free || block.bytes != held.bytes || held.pool != COMMON || held.pins > 0 {
                continue;
            }
            let small = held.small;
            self.unlist(first);
            self.unused_blocks.push(first);
            if let Some(held) = self.segments[slot].take() {
                self.by_base.retain(|b| b.1 != slot as u32);
                self.unused_segments.push(slot as u32);
                self.stats.each(small, |p| {
                    p.reserved_bytes.decrease(held.bytes);
                    p.segments.decrease(1);
                });
                released.push(held.segment);
            }
        }
        released
    }

    /// The block in use that `address` lies in: its address and bytes. Fast for a block's first address.
    pub(crate) fn block(&self, address: u64) -> Option<(u64, u64)> {
        let range = |b: &Block| (b.address, b.bytes);
        if let Some(&block) = self.in_use.get(&address) {
            return Some(range(&self.blocks[block as usize]));
        }
        let held = self.segments[self.segment_at(address)? as usize].as_ref()?;
        let mut at = held.first;
        while at != NONE {
            let block = &self.blocks[at as usize];
            if address < block.address + block.bytes {
                return self.in_use.contains_key(&block.address).then(|| range(block));
            }
            at = block.next;
        }
        None
    }

    /// The segment that holds `[address, address + bytes)`: a number that stays valid until
    /// [`release`](Self::release), and the offset in the segment.
    pub(crate) fn locate(&self, address: u64, bytes: u64) -> Option<(u32, u64)> {
        let slot = self.segment_at(address)?;
        let held = self.segments[slot as usize].as_ref()?;
        let offset = address - held.address;
        (bytes <= held.bytes - offset).then_some((slot, offset))
    }

    /// The segment that `address` lies in: its number, and the address of its end.
    pub(crate) fn segment_end(&self, address: u64) -> Option<(u32, u64)> {
        let slot = self.segment_at(address)?;
        let held = self.segments[slot as usize].as_ref()?;
        Some((slot, held.address + held.bytes))
    }

    /// As [`locate`](Self::locate), the segment itself.
    pub(crate) fn locate_segment(&self, address: u64, bytes: u64) -> Option<(&S, u64)> {
        let (slot, offset) = self.locate(address, bytes)?;
        Some((self.segment(slot)?, offset))
    }

    /// The segment of a number from [`locate`](Self::locate).
    pub(crate) fn segment(&self, slot: u32) -> Option<&S> {
        self.segments.get(slot as usize)?.as_ref().map(|held| &held.segment)
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.stats.all.reserved_bytes.current
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let mut stats = self.stats;
        for held in self.segments.iter().flatten() {
            let mut at = held.first;
            let whole = self.blocks[at as usize].bytes == held.bytes;
            while at != NONE && !whole {
                let block = &self.blocks[at as usize];
                if block.requested == 0 {
                    stats.each(held.small, |p| {
                        p.inactive_split_blocks += 1;
                        p.inactive_split_bytes += block.bytes;
                    });
                }
                at = block.next;
            }
        }
        stats
    }

    /// All segments by address, with their blocks.
    pub(crate) fn snapshot(&self) -> Vec<SegmentInfo> {
        let held = self.by_base.iter().filter_map(|&(_, slot)| self.segments[slot as usize].as_ref());
        held.map(|held| {
            let mut blocks = Vec::new();
            let mut at = held.first;
            while at != NONE {
                let &Block { address, bytes, requested, next, .. } = &self.blocks[at as usize];
                blocks.push(BlockInfo { address, bytes, requested });
                at = next;
            }
            SegmentInfo { address: held.address, bytes: held.bytes, small: held.small, blocks }
        })
        .collect()
    }

    pub(crate) fn stats_mut(&mut self) -> &mut MemoryStats {
        &mut self.stats
    }

    fn segment_at(&self, address: u64) -> Option<u32> {
        let at = self.by_base.partition_point(|b| b.0 <= address).checked_sub(1)?;
        let slot = self.by_base[at].1;
        let held = self.segments[slot as usize].as_ref()?;
        (address - held.address < held.bytes).then_some(slot)
    }

    /// Whether a segment is one of small blocks, and its pool.
    fn kind(&self, segment: u32) -> (bool, u32) {
        self.segments[segment as usize].as_ref().map_or((false, COMMON), |held| (held.small, held.pool))
    }

    /// Marks a listed block as used, splitting off what is too much.
    fn use_block(&mut self, block: u32, bytes: u64, requested: u64, small: bool) -> u64 {
        self.unlist(block);
        let b = &mut self.blocks[block as usize];
        b.free = false;
        b.requested = requested;
        let (address, rest) = (b.address, b.bytes - bytes);
        let split = if small { rest >= GRAIN } else { rest > LARGE_REMAINDER };
        let mut taken = b.bytes;
        if split {
            taken = bytes;
            b.bytes = bytes;
            let (segment, next) = (b.segment, b.next);
            let tail = self.new_block(Block {
                address: address + bytes,
                bytes: rest,
                requested: 0,
                segment,
                prev: block,
                next,
                free: true,
            });
            self.blocks[block as usize].next = tail;
            if next != NONE {
                self.blocks[next as usize].prev = tail;
            }
            self.list(tail);
        }
        self.in_use.insert(address, block);
        self.stats.each(small, |p| {
            p.allocated_bytes.increase(taken);
            p.requested_bytes.increase(requested);
            p.allocations.increase(1);
        });
        address
    }

    fn new_block(&mut self, block: Block) -> u32 {
        match self.unused_blocks.pop() {
            Some(at) => {
                self.blocks[at as usize] = block;
                at
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        }
    }

    fn absorb_next(&mut self, block: u32, next: u32) {
        let (bytes, after) = {
            let n = &self.blocks[next as usize];
            (n.bytes, n.next)
        };
        let b = &mut self.blocks[block as usize];
        b.bytes += bytes;
        b.next = after;
        if after != NONE {
            self.blocks[after as usize].prev = block;
        }
        self.unused_blocks.push(next);
    }

    fn list(&mut self, block: u32) {
        let Block { bytes, address, segment, .. } = self.blocks[block as usize];
        let (small, pool) = self.kind(segment);
        let Some(free) = self.pool(pool) else { return };
        if small {
            free.small.insert(bytes, block);
        } else {
            free.large.insert(bytes, address, block);
        }
    }

    fn unlist(&mut self, block: u32) {
        let Block { bytes, address, segment, .. } = self.blocks[block as usize];
        let (small, pool) = self.kind(segment);
        let Some(free) = self.pool(pool) else { return };
        if small {
            free.small.remove(bytes, block);
        } else {
            free.large.remove(bytes, address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use std::cell::Cell;
    use std::collections::BTreeMap;

    /// Hands out addresses up to a budget.
    struct Fake {
        next: Cell<u64>,
        left: Cell<u64>,
    }

    struct FakeSegment {
        address: u64,
        bytes: u64,
    }

    impl Fake {
        fn new(budget: u64) -> Self {
            Self { next: Cell::new(1 << 40), left: Cell::new(budget) }
        }

        fn give_back(&self, segments: Vec<FakeSegment>) {
            for s in segments {
                self.left.set(self.left.get() + s.bytes);
            }
        }
    }

    impl Source for Fake {
        type Segment = FakeSegment;
        type Error = ();

        fn allocate(&self, bytes: u64) -> Result<FakeSegment, ()> {
            if bytes > self.left.get() {
                return Err(());
            }
            self.left.set(self.left.get() - bytes);
            let address = self.next.get();
            self.next.set(address + bytes + 4096);
            Ok(FakeSegment { address, bytes })
        }

        fn address(segment: &FakeSegment) -> u64 {
            segment.address
        }
    }

    type Fakes = Allocator<FakeSegment>;

    fn get(a: &mut Fakes, source: &Fake, bytes: u64) -> u64 {
        a.take(COMMON, bytes).unwrap_or_else(|| a.grow(source, COMMON, bytes, u64::MAX, false).expect("budget"))
    }

    #[test]
    fn segments_have_their_sizes() {
        let source = Fake::new(u64::MAX);
        let mut a = Fakes::new();
        get(&mut a, &source, 1);
        assert_eq!(a.reserved(), 2 * MIB);
        get(&mut a, &source, MIB);
        assert_eq!(a.reserved(), 2 * MIB, "the second fits beside the first");
        get(&mut a, &source, MIB + 1);
        assert_eq!(a.reserved(), 22 * MIB);
        get(&mut a, &source, 9 * MIB);
        assert_eq!(a.reserved(), 22 * MIB);
        get(&mut a, &source, 10 * MIB);
        assert_eq!(a.reserved(), 32 * MIB);
        get(&mut a, &source, 33 * MIB + 1);
        assert_eq!(a.reserved(), 66 * MIB);
    }

    #[test]
    fn a_freed_block_is_reused_and_neighbours_merge() {
        let source = Fake::new(u64::MAX);
        let mut a = Fakes::new();
        let x = get(&mut a, &source, 1000);
        let y = get(&mut a, &source, 1000);
        let z = get(&mut a, &source, 1000);
        assert_eq!((y, z), (x + 1024, x + 2048));
        assert!(a.free(y, false));
        assert_eq!(get(&mut a, &source, 600), y, "best fit, not the large rest");
        assert!(a.free(x, false));
        assert!(a.free(y, false));
        assert_eq!(get(&mut a, &source, 2048), x, "two merged");
        assert!(!a.free(y, false), "not a block any more");
        assert!(a.free(x, false));
        assert!(a.free(z, false));
        assert!(!a.free(z, false), "freed twice");
        assert_eq!(a.release().len(), 1);
        assert_eq!(a.reserved(), 0);
    }

    #[test]
    fn resting_blocks_are_handed_out_last() {
        let source = Fake::new(2 * MIB);
        let mut a = Fakes::new();
        let x = get(&mut a, &source, 512);
        assert!(a.free(x, true));
        assert_eq!(a.stats().all.allocated_bytes.current, 0);
        assert_eq!(a.block(x), None);
        let y = get(&mut a, &source, 512);
        assert_ne!(x, y);
        assert!(a.free(y, true));
        assert_eq!(get(&mut a, &source, MIB), x + 1024);
        assert!(a.free(x + 1024, false));
        a.recycle(COMMON);
        assert_eq!(get(&mut a, &source, 512), x);
        let z = get(&mut a, &source, 200 << 10);
        assert!(a.free(z, true));
        assert!(a.free(x, true));
        assert_eq!(get(&mut a, &source, MIB), x + 512 + (200 << 10), "behind what rests");
        get(&mut a, &source, MIB - (200 << 10) - 512);
        assert_eq!(get(&mut a, &source, 512 + (200 << 10)), x, "what rested, when nothing else is left");
    }

    #[test]
    fn addresses_map_to_blocks() {
        let source = Fake::new(u64::MAX);
        let mut a = Fakes::new();
        let x = get(&mut a, &source, 1000);
        let y = get(&mut a, &source, 5 * MIB);
        assert_eq!(a.block(x), Some((x, 1024)));
        assert_eq!(a.block(x + 1023), Some((x, 1024)));
        assert_eq!(a.block(x + 1024), None);
        assert_eq!(a.block(y + 7), Some((y, 5 * MIB)));
        assert_eq!(a.block(3), None);
        let (slot, offset) = a.locate(y + 8, 100).expect("inside");
        assert_eq!(offset, 8);
        assert_eq!(a.segment(slot).map(Fake::address), Some(y));
        assert_eq!(a.locate(y, 21 * MIB), None);
    }

    #[test]
    fn pools_share_nothing_until_they_end() {
        let source = Fake::new(u64::MAX);
        let mut a = Fakes::new();
        let common = get(&mut a, &source, 1000);
        let pool = a.new_pool();
        assert_eq!(a.take(pool, 1000), None, "the common pool's memory is not the new one's");
        let x = a.grow(&source, pool, 1000, u64::MAX, false).expect("budget");
        let y = a.take(pool, 5000).expect("beside it");
        assert_eq!((a.pool_of(common), a.pool_of(y), a.pool_of(3)), (Some(COMMON), Some(pool), None));
        assert_eq!(a.stats().all.reserved_bytes.current, 4 * MIB, "the statistics count it");
        assert!(a.free(x, true));
        assert_eq!(a.take(COMMON, 2 * MIB), None);
        assert!(a.free(common, false));
        assert_eq!(a.release().len(), 1, "the pool keeps its segments");
        a.end_pool(pool);
        assert_eq!(a.pool_of(y), Some(COMMON));
        assert_eq!(a.take(COMMON, 1000), Some(x));
        assert!(a.free(x, false));
        assert!(a.free(y, false));
        assert_eq!(a.release().len(), 1);
        assert_eq!(a.reserved(), 0);
        assert_eq!(a.new_pool(), pool, "the number is used again");
    }

    #[test]
    fn a_pinned_segment_is_not_released() {
        let source = Fake::new(u64::MAX);
        let mut a = Fakes::new();
        let x = get(&mut a, &source, 1000);
        let slot = a.pin(x + 10).expect("in use");
        assert_eq!(a.pin(x), Some(slot));
        assert_eq!(a.pin(3), None);
        assert!(a.free(x, false));
        a.unpin(slot);
        assert!(a.release().is_empty());
        assert_eq!(get(&mut a, &source, 1000), x, "but its memory can be used");
        assert!(a.free(x, false));
        a.unpin(slot);
        assert_eq!(a.release().len(), 1);
    }

    #[test]
    fn out_of_memory_recovers() {
        let source = Fake::new(64 * MIB);
        let mut a = Fakes::new();
        let x = get(&mut a, &source, 40 * MIB);
        assert!(a.grow(&source, COMMON, 30 * MIB, u64::MAX, false).is_err());
        assert!(a.free(x, false));
        assert!(a.take(COMMON, 50 * MIB).is_none());
        assert!(a.grow(&source, COMMON, 50 * MIB, u64::MAX, false).is_err(), "the cache holds it");
        source.give_back(a.release());
        let y = a.grow(&source, COMMON, 50 * MIB, u64::MAX, false).expect("released");
        assert!(a.grow(&source, COMMON, 2 * MIB, u64::MAX, false).is_err(), "no 20 MiB");
        a.grow(&source, COMMON, 2 * MIB, u64::MAX, true).expect("modest");
        assert!(matches!(a.grow(&source, COMMON, 2 * MIB, 53 * MIB, true), Err(GrowError::Limit)));
        assert!(a.free(y, false));
    }

    /// Random allocations and frees: blocks never overlap, lie in segments, the statistics add up,
    /// and everything merges back into whole segments at the end.
    #[test]
    fn random_traffic() {
        for seed in 0..8 {
            let mut random = Random::new(seed);
            let source = Fake::new(600 * MIB);
            let mut a = Fakes::new();
            let mut live: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            let mut order: Vec<u64> = Vec::new();
            for step in 0..6000 {
                if random.below(100) < 55 {
                    let bytes = match random.below(10) {
                        0..6 => 1 + random.below(8192),
                        6..8 => 1 + random.below(MIB),
                        8 => 1 + random.below(10 * MIB),
                        _ => 1 + random.below(40 * MIB),
                    };
                    let got = a.take(COMMON, bytes).or_else(|| a.grow(&source, COMMON, bytes, u64::MAX, false).ok());
                    let Some(address) = got else {
                        source.give_back(a.release());
                        continue;
                    };
                    let (start, size) = a.block(address).expect("in use");
                    assert_eq!(start, address);
                    assert!(size >= bytes);
                    assert_eq!(address % 512, 0);
                    let below = live.range(..=address).next_back();
                    assert!(below.is_none_or(|(s, (n, _))| s + n <= address));
                    let above = live.range(address..).next();
                    assert!(above.is_none_or(|(s, _)| address + size <= *s));
                    assert!(a.locate(address, size).is_some());
                    live.insert(address, (size, bytes));
                    order.push(address);
                } else if !order.is_empty() {
                    let at = random.below(order.len() as u64) as usize;
                    let address = order.swap_remove(at);
                    live.remove(&address);
                    assert!(a.free(address, random.below(2) == 0));
                }
                if random.below(40) == 0 {
                    a.recycle(COMMON);
                }
                if step % 100 == 0 {
                    let s = a.stats();
                    assert_eq!(s.all.allocated_bytes.current, live.values().map(|v| v.0).sum::<u64>());
                    assert_eq!(s.all.requested_bytes.current, live.values().map(|v| v.1).sum::<u64>());
                    assert_eq!(s.all.allocations.current, live.len() as u64);
                    for stat in [s.all.allocated_bytes, s.all.reserved_bytes, s.all.allocations, s.all.segments] {
                        assert_eq!(stat.allocated - stat.freed, stat.current);
                        assert!(stat.peak >= stat.current);
                    }
                    assert_eq!(
                        s.small.reserved_bytes.current + s.large.reserved_bytes.current,
                        s.all.reserved_bytes.current
                    );
                    assert!(s.all.inactive_split_bytes + s.all.allocated_bytes.current <= s.all.reserved_bytes.current);
                    let snapshot = a.snapshot();
                    let blocks = || snapshot.iter().flat_map(|s| &s.blocks);
                    assert_eq!(snapshot.iter().map(|s| s.bytes).sum::<u64>(), s.all.reserved_bytes.current);
                    assert_eq!(blocks().map(|b| b.bytes).sum::<u64>(), s.all.reserved_bytes.current);
                    assert_eq!(blocks().map(|b| b.requested).sum::<u64>(), s.all.requested_bytes.current);
                }
            }
            for address in order {
                assert!(a.free(address, false));
            }
            source.give_back(a.release());
            assert_eq!(a.reserved(), 0);
            assert_eq!(source.left.get(), 600 * MIB);
            assert_eq!(a.stats().all.allocations.current, 0);
        }
    }
}
