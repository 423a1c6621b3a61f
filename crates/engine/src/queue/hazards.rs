//! Which commands need a barrier before them: overlap of byte ranges since the last barrier.

use crate::queue::launch::Range;

/// Beyond this many intervals a barrier is cheaper than the bookkeeping.
const MOST_INTERVALS: usize = 2048;

/// Disjoint byte ranges, sorted, neighbours merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    ranges: Vec<Range>,
}

impl IntervalSet {
    /// Whether any byte of `range` is in the set. Logarithmic.
    pub(crate) fn overlaps(&self, range: Range) -> bool {
        if range.start >= range.end {
            return false;
        }
        let i = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges.get(i).is_some_and(|r| r.start < range.end)
    }

    /// Adds the bytes of `range`.
    pub(crate) fn insert(&mut self, range: Range) {
        if range.start >= range.end {
            return;
        }
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = from + self.ranges[from..].partition_point(|r| r.start <= range.end);
        if from == to {
            self.ranges.insert(from, range);
            return;
        }
        let merged =
            Range { start: range.start.min(self.ranges[from].start), end: range.end.max(self.ranges[to - 1].end) };
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
    }

    fn clear(&mut self) {
        self.ranges.clear();
    }

    fn len(&self) -> usize {
        self.ranges.len()
    }
}

/// The bytes read and written since the last barrier.
///
/// A barrier orders everything before it with everything after it, so one suffices however many
/// ranges conflict, and after it both sets are empty.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    read: IntervalSet,
    written: IntervalSet,
}

impl Hazards {
    /// Notes a command's accesses. True when a barrier must come before the command: it reads what
    /// was written, or writes what was read or written, since the last barrier.
    pub(crate) fn access(&mut self, reads: &[Range], writes: &[Range]) -> bool {
        let conflict = reads.iter().any(|&r| self.written.overlaps(r))
            || writes.iter().any(|&w| self.written.overlaps(w) || self.read.overlaps(w))
            || self.read.len() + self.written.len() > MOST_INTERVALS;
        if conflict {
            self.clear();
        }
        for &r in reads {
            self.read.insert(r);
        }
        for &w in writes {
            self.written.insert(w);
        }
        conflict
    }

    /// As [`clear`](Self::clear), and then notes these accesses.
    pub(crate) fn restart(&mut self, read: &IntervalSet, written: &IntervalSet) {
        self.read.ranges.clone_from(&read.ranges);
        self.written.ranges.clone_from(&written.ranges);
    }

    /// Forgets everything: a barrier was recorded, or the host waited for all work.
    pub(crate) fn clear(&mut self) {
        self.read.clear();
        self.written.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
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
        let mut random = Random::new(1);
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

    #[test]
    fn reading_twice_needs_no_barrier() {
        let mut hazards = Hazards::default();
        assert!(!hazards.access(&[range(0, 64)], &[range(64, 128)]));
        assert!(!hazards.access(&[range(0, 64)], &[range(128, 192)]));
        assert!(hazards.access(&[range(64, 68)], &[]), "read after write");
        assert!(hazards.access(&[], &[range(64, 65)]), "write after read");
        assert!(hazards.access(&[], &[range(64, 65)]), "write after write");
        assert!(!hazards.access(&[], &[range(0, 64)]), "the barrier cleared it");
    }

    #[test]
    fn in_place_is_no_hazard_of_its_own() {
        let mut hazards = Hazards::default();
        assert!(!hazards.access(&[range(0, 64)], &[range(0, 64)]));
        assert!(hazards.access(&[range(0, 64)], &[range(0, 64)]));
    }

    /// Every pair of conflicting commands has a barrier between them, and every barrier has a pair that needs it.
    #[test]
    fn barriers_agree_with_brute_force() {
        let mut random = Random::new(2);
        for _ in 0..100 {
            let mut hazards = Hazards::default();
            let mut since: Vec<(Vec<Range>, Vec<Range>)> = Vec::new();
            for _ in 0..60 {
                let mut some = |most: u64| -> Vec<Range> {
                    (0..random.below(most + 1))
                        .map(|_| {
                            let start = random.below(400);
                            range(start, start + random.below(20))
                        })
                        .collect()
                };
                let (reads, writes) = (some(3), some(2));
                let hit = |a: &[Range], b: &[Range]| {
                    a.iter().any(|x| {
                        b.iter().any(|y| x.start < y.end && y.start < x.end && x.start < x.end && y.start < y.end)
                    })
                };
                let needed = since.iter().any(|(r, w)| hit(&reads, w) || hit(&writes, w) || hit(&writes, r));
                assert_eq!(hazards.access(&reads, &writes), needed);
                if needed {
                    since.clear();
                }
                since.push((reads, writes));
            }
        }
    }
}
