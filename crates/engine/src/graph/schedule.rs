//! The order in which a graph's commands run.
//!
//! A barrier orders everything before it with everything after it. Commands are therefore arranged
//! in levels with a barrier between neighbours: a command goes to the first level after all
//! commands that it depends on. The levels are as many as the longest chain of dependent commands,
//! and fewer cannot be.
//!
//! Commands depend on each other where bytes that one writes are read or written by the other. This
//! covers memory that is freed and allocated again inside the graph: the later owner writes what
//! the earlier one read or wrote.

use crate::commands::intervals::IntervalSet;
use crate::memory::range::AddressRange;
use crate::submit::barriers::{Barriers, Order};
use std::collections::BTreeMap;

/// The levels of commands, which are numbered as they were captured.
pub(crate) struct Schedule {
    /// The level of each command.
    pub(crate) level: Vec<u32>,
    /// The commands by level, inside a level as they were captured.
    pub(crate) order: Vec<usize>,
}

/// The last accesses of neighbouring bytes up to `end`. Levels are counted from 1; 0 is no access.
#[derive(Copy, Clone, Default)]
struct Touched {
    end: u64,
    /// The level of the last write.
    last_write: u32,
    /// The highest level of a read since.
    last_read: u32,
}

/// Disjoint ranges by their start.
#[derive(Default)]
struct Map {
    ranges: BTreeMap<u64, Touched>,
}

impl Map {
    /// The ranges that overlap `range`.
    fn overlapping(&self, range: AddressRange) -> impl Iterator<Item = &Touched> {
        let first = self.ranges.range(..=range.start).next_back().filter(|(_, touched)| touched.end > range.start);
        let from = first.map_or(range.start, |(&start, _)| start);
        self.ranges.range(from..range.end.max(from)).map(|(_, touched)| touched)
    }

    /// The range, if it is known as a whole: the common case, as most launches access whole
    /// tensors.
    fn whole(&mut self, range: AddressRange) -> Option<&mut Touched> {
        self.ranges.get_mut(&range.start).filter(|touched| touched.end == range.end)
    }

    /// Splits the range that goes over `at`.
    fn split(&mut self, at: u64) {
        if let Some((_, before)) = self.ranges.range_mut(..at).next_back()
            && before.end > at
        {
            let after = *before;
            before.end = at;
            self.ranges.insert(at, after);
        }
    }

    fn read(&mut self, range: AddressRange, level: u32) {
        if let Some(touched) = self.whole(range) {
            touched.last_read = touched.last_read.max(level);
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut at = range.start;
        let mut gaps = Vec::new();
        for (&start, touched) in self.ranges.range_mut(range.start..range.end) {
            if at < start {
                gaps.push((at, start));
            }
            touched.last_read = touched.last_read.max(level);
            at = touched.end;
        }
        if at < range.end {
            gaps.push((at, range.end));
        }
        for (start, end) in gaps {
            self.ranges.insert(start, Touched { end, last_write: 0, last_read: level });
        }
    }

    fn write(&mut self, range: AddressRange, level: u32) {
        // Commands that depend on earlier accesses depend on this write too, which is on a later
        // level.
        let write = Touched { end: range.end, last_write: level, last_read: 0 };
        if let Some(touched) = self.whole(range) {
            *touched = write;
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let covered: Vec<u64> = self.ranges.range(range.start..range.end).map(|(&start, _)| start).collect();
        for start in covered {
            self.ranges.remove(&start);
        }
        self.ranges.insert(range.start, write);
    }
}

/// Schedules commands by their reads and writes.
pub(crate) fn levels<'a>(accesses: impl Iterator<Item = (&'a [AddressRange], &'a [AddressRange])>) -> Schedule {
    let some = |ranges: &'a [AddressRange]| ranges.iter().copied().filter(|r| r.start < r.end);
    let mut map = Map::default();
    let mut level = Vec::new();
    for (reads, writes) in accesses {
        let after_writes = some(reads).flat_map(|r| map.overlapping(r)).map(|t| t.last_write).max();
        let after_all = some(writes).flat_map(|w| map.overlapping(w)).map(|t| t.last_write.max(t.last_read)).max();
        let own = after_writes.max(after_all).unwrap_or(0) + 1;
        for r in some(reads) {
            map.read(r, own);
        }
        for w in some(writes) {
            map.write(w, own);
        }
        level.push(own - 1);
    }
    let mut order: Vec<usize> = (0..level.len()).collect();
    order.sort_by_key(|&at| level[at]);
    Schedule { level, order }
}

/// The bytes that commands read and write.
pub(crate) fn accessed<'a>(
    accesses: impl Iterator<Item = (&'a [AddressRange], &'a [AddressRange])>,
) -> (IntervalSet, IntervalSet) {
    let (mut read, mut written) = (IntervalSet::default(), IntervalSet::default());
    for (reads, writes) in accesses {
        reads.iter().for_each(|&r| read.insert(r));
        writes.iter().for_each(|&w| written.insert(w));
    }
    (read, written)
}

/// The number of barriers that the commands need in the order of their capture, the one at the
/// beginning included.
pub(crate) fn barriers_in_order<'a>(accesses: impl Iterator<Item = (&'a [AddressRange], &'a [AddressRange])>) -> u32 {
    let mut eager = Barriers::default();
    let mut barriers = 0;
    for (at, (reads, writes)) in accesses.enumerate() {
        barriers += u32::from(eager.before(Order::AfterConflicts, reads, writes) || at == 0);
    }
    barriers
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_testing::Random;

    type Access = (Vec<AddressRange>, Vec<AddressRange>);

    fn range(start: u64, end: u64) -> AddressRange {
        AddressRange { start, end }
    }

    fn schedule(commands: &[Access]) -> Schedule {
        levels(commands.iter().map(|(r, w)| (r.as_slice(), w.as_slice())))
    }

    fn count(schedule: &Schedule) -> u32 {
        schedule.level.iter().max().map_or(0, |last| last + 1)
    }

    fn in_order(commands: &[Access]) -> u32 {
        barriers_in_order(commands.iter().map(|(r, w)| (r.as_slice(), w.as_slice())))
    }

    #[test]
    fn nothing_has_no_levels() {
        let none = schedule(&[]);
        assert_eq!((count(&none), in_order(&[])), (0, 0));
        assert_eq!(count(&schedule(&[(vec![], vec![range(5, 5)])])), 1);
    }

    #[test]
    fn chains_run_beside_each_other() {
        // Four chains of three, one captured after the other.
        let block = |chain: u64, at: u64| range(1000 * chain + 10 * at, 1000 * chain + 10 * at + 10);
        let commands: Vec<Access> =
            (0..4).flat_map(|c| (0..3).map(move |i| (vec![block(c, i)], vec![block(c, i + 1)]))).collect();
        let found = schedule(&commands);
        assert_eq!(found.level, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(found.order, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
        assert_eq!((count(&found), in_order(&commands)), (3, 9));
    }

    #[test]
    fn memory_that_is_used_again_is_a_dependency() {
        let (x, t, y, z) = (range(0, 10), range(10, 20), range(20, 30), range(30, 40));
        let commands = [
            (vec![x], vec![t]),
            (vec![t], vec![y]),
            (vec![x], vec![t]), // Other contents: it waits for the reader of the first.
            (vec![t], vec![z]),
        ];
        assert_eq!(schedule(&commands).level, [0, 1, 2, 3]);
    }

    #[test]
    fn readers_share_a_level_and_the_writer_waits_for_all() {
        let x = range(0, 100);
        let commands = [
            (vec![range(0, 10)], vec![range(200, 210)]),
            (vec![range(200, 210), range(50, 60)], vec![range(300, 310)]),
            (vec![range(90, 100)], vec![range(400, 410)]),
            (vec![], vec![x]),
            (vec![x], vec![x]),
        ];
        assert_eq!(schedule(&commands).level, [0, 1, 0, 2, 3]);
    }

    #[test]
    fn what_commands_access_is_the_union() {
        let commands = [(vec![range(4, 8)], vec![range(8, 12)]), (vec![range(6, 8)], vec![])];
        let (read, written) = accessed(commands.iter().map(|(r, w): &Access| (r.as_slice(), w.as_slice())));
        assert!(read.overlaps(range(4, 5)) && !read.overlaps(range(0, 4)));
        assert!(written.overlaps(range(8, 9)) && !written.overlaps(range(4, 8)));
    }

    /// Every dependent pair is in order on different levels, and every command has a reason to be
    /// no earlier.
    #[test]
    fn levels_agree_with_brute_force() {
        let mut random = Random(3);
        for _ in 0..200 {
            let mut some = |most: u64| -> Vec<AddressRange> {
                (0..random.below(most + 1))
                    .map(|_| {
                        let start = random.below(300);
                        range(start, start + random.below(20))
                    })
                    .collect()
            };
            let commands: Vec<Access> = (0..50).map(|_| (some(3), some(2))).collect();
            let hit = |a: &[AddressRange], b: &[AddressRange]| {
                a.iter().any(|x| b.iter().any(|y| x.start.max(y.start) < x.end.min(y.end)))
            };
            let depends = |(r, w): &Access, (er, ew): &Access| hit(r, ew) || hit(w, ew) || hit(w, er);
            let found = schedule(&commands);
            for (at, command) in commands.iter().enumerate() {
                let after = (0..at).filter(|&e| depends(command, &commands[e])).map(|e| found.level[e] + 1).max();
                assert_eq!(found.level[at], after.unwrap_or(0));
            }
            assert!(count(&found) <= in_order(&commands));
        }
    }
}
