//! Which memory a launch touches, in blocks of 64 bytes, and what is measured of the workgroups
//! that are sampled.

use rustc_hash::FxHashMap;

use super::Group;
use super::memory::lanes;
use super::wave::Row;

/// Bytes of a block: what the caches of RDNA and its memory pass on at a time.
const BLOCK: u64 = 64;

/// Different blocks of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Of each 64 blocks that lie together, which are there.
    groups: FxHashMap<u64, u64>,
    /// The last one that was looked at, since the next is mostly the same.
    last: (u64, u64),
}

impl Blocks {
    /// Puts a block in.
    #[inline]
    pub fn put(&mut self, block: u64) {
        let (group, bit) = (block / 64, 1 << (block % 64));
        if self.last.0 == group && self.last.1 & bit != 0 {
            return;
        }
        let blocks = self.groups.entry(group).or_default();
        *blocks |= bit;
        self.last = (group, *blocks);
    }

    /// Puts all of another in.
    pub fn add(&mut self, other: &Self) {
        for (&group, &blocks) in &other.groups {
            *self.groups.entry(group).or_default() |= blocks;
        }
        self.last = (0, 0);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.groups.values().map(|blocks| u64::from(blocks.count_ones())).sum()
    }
}

/// What is measured of a workgroup in full.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Cycles of shared memory.
    pub shared_cycles: u64,
    /// Those of them in which lanes wait for a bank.
    pub bank_conflicts: u64,
    /// Blocks that each instruction of memory asks for, of all instructions.
    pub requests: u64,
    /// Blocks that the workgroup reads.
    pub read: Blocks,
    /// Blocks that it writes.
    pub written: Blocks,
    /// Cycles from its begin to its end; see [`super::timeline`].
    pub cycles: u64,
    /// Cycles that its waves wait for memory, all of them together.
    pub memory_wait: u64,
    /// Cycles that its waves wait for shared memory and scalar loads.
    pub shared_wait: u64,
}

impl Group<'_> {
    /// Notes the blocks that active lanes touch.
    pub(super) fn note_traffic<const N: usize>(
        &mut self,
        active: u64,
        addresses: &Row<N, u64>,
        bytes: u32,
        write: bool,
    ) {
        let all = if write { &mut self.counts.written } else { &mut self.counts.read };
        let mut previous = u64::MAX;
        for lane in lanes(active) {
            let (first, last) = (addresses[lane] / BLOCK, (addresses[lane] + u64::from(bytes) - 1) / BLOCK);
            for block in first..=last {
                if block != previous {
                    all.put(block);
                    previous = block;
                }
            }
        }
        let Some(sample) = &mut self.sample else { return };
        let own = if write { &mut sample.written } else { &mut sample.read };
        let mut blocks = [0; 128];
        let mut count = 0;
        for lane in lanes(active) {
            for end in [addresses[lane], addresses[lane] + u64::from(bytes) - 1] {
                blocks[count] = end / BLOCK;
                count += 1;
            }
        }
        let blocks = &mut blocks[..count];
        blocks.sort_unstable();
        for (k, &block) in blocks.iter().enumerate() {
            if k == 0 || blocks[k - 1] != block {
                own.put(block);
                sample.requests += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_count_once() {
        let (mut some, mut others) = (Blocks::default(), Blocks::default());
        for block in [0, 0, 1, 64, 1, 0] {
            some.put(block);
        }
        for block in [1, 2, 1 << 40] {
            others.put(block);
        }
        some.add(&others);
        assert_eq!((some.count(), others.count()), (5, 3));
    }
}
