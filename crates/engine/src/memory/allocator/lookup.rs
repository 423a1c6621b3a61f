//! Lookup of blocks and segments by address.

use super::blocks::Block;
use super::{Allocator, Source};
use crate::memory::free_lists::NONE;
use crate::memory::statistics::{BlockInfo, MemoryStats, SegmentInfo};

impl<S: Source> Allocator<S> {
    /// The block in use that contains `address`: its address and bytes. Fast for a block's first
    /// address.
    pub(crate) fn block(&self, address: u64) -> Option<(u64, u64)> {
        let range = |b: &Block| (b.address, b.bytes);
        if let Some(&block) = self.in_use.get(&address) {
            return Some(range(&self.blocks[block]));
        }
        let state = self.segments[self.segment_at(address)? as usize].as_ref()?;
        let mut at = state.first;
        while at != NONE {
            let block = &self.blocks[at];
            if address < block.address + block.bytes {
                return self.in_use.contains_key(&block.address).then(|| range(block));
            }
            at = block.next;
        }
        None
    }

    /// The segment that contains `[address, address + bytes)`: a number that stays valid until
    /// [`release`](Self::release), and the offset in the segment.
    pub(crate) fn locate(&self, address: u64, bytes: u64) -> Option<(u32, u64)> {
        let slot = self.segment_at(address)?;
        let state = self.segments[slot as usize].as_ref()?;
        let offset = address - state.address;
        (bytes <= state.bytes - offset).then_some((slot, offset))
    }

    /// The segment that contains `address`: its number, and the address of its end.
    pub(crate) fn segment_end(&self, address: u64) -> Option<(u32, u64)> {
        let slot = self.segment_at(address)?;
        let state = self.segments[slot as usize].as_ref()?;
        Some((slot, state.address + state.bytes))
    }

    /// As [`locate`](Self::locate), the segment itself.
    pub(crate) fn locate_segment(&self, address: u64, bytes: u64) -> Option<(&S::Segment, u64)> {
        let (slot, offset) = self.locate(address, bytes)?;
        Some((self.segment(slot)?, offset))
    }

    /// The segment of a number from [`locate`](Self::locate).
    pub(crate) fn segment(&self, slot: u32) -> Option<&S::Segment> {
        self.segments.get(slot as usize)?.as_ref().map(|state| &state.segment)
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let mut stats = self.stats;
        for state in self.segments.iter().flatten() {
            let mut at = state.first;
            let whole = self.blocks[at].bytes == state.bytes;
            while at != NONE && !whole {
                let block = &self.blocks[at];
                if block.requested == 0 {
                    stats.each(state.small, |p| {
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
        let states = self.by_base.iter().filter_map(|&(_, slot)| self.segments[slot as usize].as_ref());
        states
            .map(|state| {
                let mut blocks = Vec::new();
                let mut at = state.first;
                while at != NONE {
                    let &Block { address, bytes, requested, next, .. } = &self.blocks[at];
                    blocks.push(BlockInfo { address, bytes, requested });
                    at = next;
                }
                SegmentInfo { address: state.address, bytes: state.bytes, small: state.small, blocks }
            })
            .collect()
    }
}
