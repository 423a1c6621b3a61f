//! Statistics of the allocator.

/// One quantity over time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Now.
    pub current: u64,
    /// The most since the last reset of the peaks.
    pub peak: u64,
    /// Sum of all increases.
    pub allocated: u64,
    /// Sum of all decreases.
    pub freed: u64,
}

impl Stat {
    #[inline]
    pub(crate) fn increase(&mut self, by: u64) {
        self.current += by;
        self.peak = self.peak.max(self.current);
        self.allocated += by;
    }

    #[inline]
    pub(crate) fn decrease(&mut self, by: u64) {
        self.current -= by;
        self.freed += by;
    }
}

/// The figures of one pool, or of all.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes of blocks in use, as handed out (rounded up). Blocks are in use until they are freed.
    pub allocated_bytes: Stat,
    /// Bytes of blocks in use, as asked for.
    pub requested_bytes: Stat,
    /// Bytes of segments allocated from the driver.
    pub reserved_bytes: Stat,
    /// Blocks in use.
    pub allocations: Stat,
    /// Segments allocated from the driver.
    pub segments: Stat,
    /// Free blocks now whose segment has a block in use: memory that `empty_cache` cannot release.
    pub inactive_split_blocks: u64,
    /// Their bytes.
    pub inactive_split_bytes: u64,
}

/// A segment and its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// It belongs to the pool of small blocks.
    pub small: bool,
    /// Its blocks, by address; together they fill the segment.
    pub blocks: Vec<BlockInfo>,
}

/// A block of a segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes asked for, 0 when it is not in use.
    pub requested: u64,
}

/// Statistics of one device's allocator.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Both pools.
    pub all: PoolStats,
    /// Blocks up to 1 MiB.
    pub small: PoolStats,
    /// Blocks above 1 MiB.
    pub large: PoolStats,
    /// How often cached segments were released because the driver had no memory.
    pub alloc_retries: u64,
    /// How often an allocation failed.
    pub ooms: u64,
}

impl PoolStats {
    fn stats(&mut self) -> [&mut Stat; 5] {
        [
            &mut self.allocated_bytes,
            &mut self.requested_bytes,
            &mut self.reserved_bytes,
            &mut self.allocations,
            &mut self.segments,
        ]
    }
}

impl MemoryStats {
    #[inline]
    pub(crate) fn each(&mut self, small: bool, mut f: impl FnMut(&mut PoolStats)) {
        f(&mut self.all);
        f(if small { &mut self.small } else { &mut self.large });
    }

    pub(crate) fn reset_peaks(&mut self) {
        for pool in [&mut self.all, &mut self.small, &mut self.large] {
            for stat in pool.stats() {
                stat.peak = stat.current;
            }
        }
    }

    pub(crate) fn reset_totals(&mut self) {
        for pool in [&mut self.all, &mut self.small, &mut self.large] {
            for stat in pool.stats() {
                (stat.allocated, stat.freed) = (0, 0);
            }
        }
        (self.alloc_retries, self.ooms) = (0, 0);
    }
}
