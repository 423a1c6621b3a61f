//! Free blocks by size: constant-time bins for small ones, a sorted list for large ones.

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// Doubly linked lists of block indices, one for each multiple of `GRAIN` up to a small segment's
/// size, with bitmaps over the lists that are not empty (as TLSF's: Masmano et al., "TLSF: a new
/// dynamic memory allocator for real-time systems", 2004).
#[derive(Debug)]
pub(crate) struct Bins {
    heads: Box<[u32; Bins::COUNT]>,
    links: Vec<Links>,
    words: [u64; Bins::COUNT / 64],
    summary: u64,
}

#[derive(Copy, Clone, Debug)]
struct Links {
    prev: u32,
    next: u32,
}

impl Bins {
    /// Sizes are multiples of this.
    pub(crate) const GRAIN: u64 = 512;
    const COUNT: usize = 4096;

    pub(crate) fn new() -> Self {
        Self { heads: Box::new([NONE; Self::COUNT]), links: Vec::new(), words: [0; Self::COUNT / 64], summary: 0 }
    }

    #[inline]
    fn bin(bytes: u64) -> usize {
        (bytes / Self::GRAIN) as usize - 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, bytes: u64, block: u32) {
        let bin = Self::bin(bytes);
        let at = block as usize;
        if self.links.len() <= at {
            self.links.resize(at + 1, Links { prev: NONE, next: NONE });
        }
        let next = self.heads[bin];
        self.links[at] = Links { prev: NONE, next };
        if next != NONE {
            self.links[next as usize].prev = block;
        }
        self.heads[bin] = block;
        self.words[bin / 64] |= 1 << (bin % 64);
        self.summary |= 1 << (bin / 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, bytes: u64, block: u32) {
        let bin = Self::bin(bytes);
        let Links { prev, next } = self.links[block as usize];
        if next != NONE {
            self.links[next as usize].prev = prev;
        }
        if prev != NONE {
            self.links[prev as usize].next = next;
            return;
        }
        self.heads[bin] = next;
        if next == NONE {
            self.words[bin / 64] &= !(1 << (bin % 64));
            if self.words[bin / 64] == 0 {
                self.summary &= !(1 << (bin / 64));
            }
        }
    }

    /// The smallest block of at least `bytes` bytes; it stays listed.
    pub(crate) fn find(&self, bytes: u64) -> Option<u32> {
        let bin = Self::bin(bytes);
        let word = bin / 64;
        let here = self.words[word] & (u64::MAX << (bin % 64));
        let bin = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            let above = self.summary & (u64::MAX << word) & !(1 << word);
            if above == 0 {
                return None;
            }
            let word = above.trailing_zeros() as usize;
            word * 64 + self.words[word].trailing_zeros() as usize
        };
        Some(self.heads[bin])
    }
}

/// Free blocks sorted by size, then address: there are few large ones.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    blocks: Vec<(u64, u64, u32)>,
}

impl Sorted {
    pub(crate) fn insert(&mut self, bytes: u64, address: u64, block: u32) {
        let at = self.blocks.partition_point(|&(b, a, _)| (b, a) < (bytes, address));
        self.blocks.insert(at, (bytes, address, block));
    }

    pub(crate) fn remove(&mut self, bytes: u64, address: u64) {
        if let Ok(at) = self.blocks.binary_search_by_key(&(bytes, address), |&(b, a, _)| (b, a)) {
            self.blocks.remove(at);
        }
    }

    /// The smallest block of at least `bytes` bytes, among equals the one with the lowest address;
    /// it stays listed.
    pub(crate) fn find(&self, bytes: u64) -> Option<u32> {
        let at = self.blocks.partition_point(|&(b, ..)| b < bytes);
        self.blocks.get(at).map(|b| b.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_testing::Random;
    use std::collections::BTreeSet;

    #[test]
    fn bins_find_the_best_fit() {
        let mut random = Random(4);
        let mut bins = Bins::new();
        let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
        let mut sizes = vec![0u64; 300];
        for _ in 0..20_000 {
            let block = random.below(300) as u32;
            let at = block as usize;
            if sizes[at] == 0 {
                sizes[at] = 512 * (1 + random.below(4096));
                bins.insert(sizes[at], block);
                model.insert((sizes[at], block));
            } else {
                bins.remove(sizes[at], block);
                model.remove(&(sizes[at], block));
                sizes[at] = 0;
            }
            let wanted = 512 * (1 + random.below(4096));
            let found = bins.find(wanted).map(|b| sizes[b as usize]);
            assert_eq!(found, model.range((wanted, 0)..).next().map(|x| x.0));
        }
    }
}
