//! The blocks of all segments, by number. The blocks of a segment are a linked list in the order of
//! their addresses, without gaps.

use crate::memory::free_lists::NONE;
use std::ops::{Index, IndexMut};

/// A part of a segment.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Bytes asked for; 0 when not in use.
    pub(super) requested: u64,
    pub(super) segment: u32,
    /// Neighbours in the segment.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Whether it is in the lists of free blocks.
    pub(super) free: bool,
}

/// Blocks by number. The number of a block that was removed is used again.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    unused: Vec<u32>,
}

impl Blocks {
    /// One free block for a whole segment.
    pub(super) fn of_segment(&mut self, segment: u32, address: u64, bytes: u64) -> u32 {
        self.add(Block { address, bytes, requested: 0, segment, prev: NONE, next: NONE, free: true })
    }

    /// Splits a block, which has `bytes` bytes afterwards. Returns the free block of the remainder.
    pub(super) fn split(&mut self, block: u32, bytes: u64) -> u32 {
        let Block { address, bytes: whole, segment, next, .. } = self[block];
        self[block].bytes = bytes;
        let (address, bytes) = (address + bytes, whole - bytes);
        let tail = self.add(Block { address, bytes, requested: 0, segment, prev: block, next, free: true });
        self[block].next = tail;
        if next != NONE {
            self[next].prev = tail;
        }
        tail
    }

    /// Merges a block with `next`, the block after it, which is removed.
    pub(super) fn absorb_next(&mut self, block: u32, next: u32) {
        let Block { bytes, next: after, .. } = self[next];
        self[block].bytes += bytes;
        self[block].next = after;
        if after != NONE {
            self[after].prev = block;
        }
        self.remove(next);
    }

    /// Removes a block: its number may be used again.
    pub(super) fn remove(&mut self, block: u32) {
        self.unused.push(block);
    }

    fn add(&mut self, block: Block) -> u32 {
        match self.unused.pop() {
            Some(number) => {
                self[number] = block;
                number
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        }
    }
}

impl Index<u32> for Blocks {
    type Output = Block;

    #[inline]
    fn index(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }
}

impl IndexMut<u32> for Blocks {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Block {
        &mut self.blocks[number as usize]
    }
}
