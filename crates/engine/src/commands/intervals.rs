//! Sets of bytes.

use crate::memory::range::AddressRange;

/// Disjoint byte ranges, sorted, neighbours merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    ranges: Vec<AddressRange>,
}

impl IntervalSet {
    /// Whether any byte of `range` is in the set. Logarithmic.
    pub(crate) fn overlaps(&self, range: AddressRange) -> bool {
        if range.start >= range.end {
            return false;
        }
        let i = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges.get(i).is_some_and(|r| r.start < range.end)
    }

    /// Adds the bytes of `range`.
    pub(crate) fn insert(&mut self, range: AddressRange) {
        if range.start >= range.end {
            return;
        }
        let from = self.ranges.partition_point(|r| r.end < range.start);
        // Each range that is passed here is merged away, so a search would not be faster.
        let to = from + self.ranges[from..].iter().take_while(|r| r.start <= range.end).count();
        if from == to {
            self.ranges.insert(from, range);
            return;
        }
        let merged = AddressRange {
            start: range.start.min(self.ranges[from].start),
            end: range.end.max(self.ranges[to - 1].end),
        };
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Ranges in it.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Becomes equal to another set, in the memory it has.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.ranges.clone_from(&other.ranges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_testing::Random;

    fn range(start: u64, end: u64) -> AddressRange {
        AddressRange { start, end }
    }

    #[test]
    fn neighbours_merge() {
        let mut set = IntervalSet::default();
        set.insert(range(10, 20));
        set.insert(range(30, 40));
        set.insert(range(50, 60));
        set.insert(range(20, 30));
        assert_eq!(set.ranges, [range(10, 40), range(50, 60)]);
        set.insert(range(0, 100));
        assert_eq!(set.ranges, [range(0, 100)]);
        set.insert(range(5, 5));
        assert_eq!(set.len(), 1);
        assert!(!set.overlaps(range(100, 200)));
        assert!(!set.overlaps(range(50, 50)));
        assert!(set.overlaps(range(99, 100)));
    }

    #[test]
    fn intervals_agree_with_a_bitmap() {
        let mut random = Random(1);
        for _ in 0..200 {
            let mut set = IntervalSet::default();
            let mut model = [false; 128];
            for _ in 0..40 {
                let start = random.below(128);
                let end = start + random.below(129 - start);
                let any = model[start as usize..end as usize].iter().any(|&b| b);
                assert_eq!(set.overlaps(range(start, end)), any);
                if random.below(2) == 0 {
                    set.insert(range(start, end));
                    model[start as usize..end as usize].fill(true);
                }
                for pair in set.ranges.windows(2) {
                    assert!(pair[0].end < pair[1].start);
                }
                let bytes: u64 = set.ranges.iter().map(|r| r.end - r.start).sum();
                assert_eq!(bytes, model.iter().filter(|&&b| b).count() as u64);
            }
        }
    }
}
