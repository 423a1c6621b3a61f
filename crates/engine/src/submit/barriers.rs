//! Which commands need a barrier before them, and when the host needs one: the only place that
//! decides it for what runs once. (A graph arranges its commands by itself, around the barriers of
//! its levels.)
//!
//! A barrier orders everything before it with everything after it and costs the GPU 2 µs. So there
//! is one only where byte ranges overlap that were accessed since the last one. A barrier for the
//! host costs 3.5 µs, once a submission: there is one only where the host is about to read mapped
//! memory.

use crate::commands::intervals::IntervalSet;
use crate::memory::range::AddressRange;
use dml_gpu::Ticket;

/// Beyond this many intervals a barrier is cheaper than the bookkeeping.
const MAX_INTERVALS: usize = 2048;

/// What the commands since the last barrier accessed, and what the host can see of what ran.
///
/// After a barrier both sets are empty: one suffices however many ranges conflict.
#[derive(Debug)]
pub(crate) struct Barriers {
    read: IntervalSet,
    written: IntervalSet,
    /// The last command is a part of the split launch of this number.
    part_of: Option<u64>,
    /// Nothing was recorded since the last barrier but reads that the host polls for.
    only_polled: bool,
    /// Submitted writes to mapped memory are visible to the host when their ticket is done.
    host_visible: bool,
    /// The submission that is being recorded makes something visible to the host.
    shows: bool,
    /// The last submission that did.
    shown: Ticket,
}

impl Default for Barriers {
    /// Before the first command.
    fn default() -> Self {
        Self {
            read: IntervalSet::default(),
            written: IntervalSet::default(),
            part_of: None,
            only_polled: true,
            host_visible: true,
            shows: false,
            shown: Ticket(0),
        }
    }
}

/// What a command comes after.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Commands that it conflicts with: it reads what they wrote, or writes what they read or
    /// wrote.
    AfterConflicts,
    /// The same but for other parts of the launch of this number. The parts of a launch do not wait
    /// for each other, as its workgroups do not.
    BesideParts(u64),
    /// All earlier work but other commands of this order: a read that the host polls for, the last
    /// command of its submission. What it reads besides its ranges (the fault block) is as that
    /// work left it.
    AfterAll,
}

impl Barriers {
    /// Adds the accesses of the command that comes next. True when a barrier must come before it.
    #[inline]
    pub(crate) fn before(&mut self, order: Order, reads: &[AddressRange], writes: &[AddressRange]) -> bool {
        match order {
            Order::AfterConflicts => self.before_command(reads, writes),
            Order::BesideParts(launch) => {
                let conflict = self.part_of != Some(launch) && self.before_command(reads, writes);
                self.part_of = Some(launch);
                self.host_visible = false;
                conflict
            }
            Order::AfterAll => {
                let all = !self.only_polled;
                if all {
                    self.clear();
                }
                let conflict = self.before_command(reads, writes);
                self.only_polled = true;
                all || conflict
            }
        }
    }

    fn before_command(&mut self, reads: &[AddressRange], writes: &[AddressRange]) -> bool {
        let conflict = reads.iter().any(|&r| self.written.overlaps(r))
            || writes.iter().any(|&w| self.written.overlaps(w) || self.read.overlaps(w))
            || self.read.len() + self.written.len() > MAX_INTERVALS;
        if conflict {
            self.clear();
        }
        for &r in reads {
            self.read.insert(r);
        }
        for &w in writes {
            self.written.insert(w);
        }
        self.part_of = None;
        self.host_visible = false;
        self.only_polled = false;
        conflict
    }

    /// The host is about to wait for what was recorded. True when a barrier for it must come at the
    /// end of the submission.
    pub(crate) fn before_host(&mut self) -> bool {
        let needed = !self.host_visible;
        self.host_visible = true;
        self.shows |= needed;
        needed
    }

    /// A graph was recorded: it begins with a barrier, and after its last one accesses these.
    pub(crate) fn after_replay(&mut self, read: &IntervalSet, written: &IntervalSet) {
        self.read.copy_from(read);
        self.written.copy_from(written);
        self.part_of = None;
        self.host_visible = false;
        self.only_polled = false;
    }

    /// What was recorded was submitted as `ticket`.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        if std::mem::take(&mut self.shows) {
            self.shown = ticket;
        }
    }

    /// The host waited for everything that was recorded: nothing needs a barrier against it.
    pub(crate) fn idle(&mut self) {
        self.clear();
        self.only_polled = true;
    }

    /// What was submitted is visible to the host as soon as it is done.
    pub(crate) fn is_host_visible(&self) -> bool {
        self.host_visible
    }

    /// The last submission that made something visible to the host.
    pub(crate) fn shown(&self) -> Ticket {
        self.shown
    }

    fn clear(&mut self) {
        self.part_of = None;
        self.read.clear();
        self.written.clear();
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
    fn reading_twice_needs_no_barrier() {
        let mut barriers = Barriers::default();
        assert!(!barriers.before(Order::AfterConflicts, &[range(0, 64)], &[range(64, 128)]));
        assert!(!barriers.before(Order::AfterConflicts, &[range(0, 64)], &[range(128, 192)]));
        assert!(barriers.before(Order::AfterConflicts, &[range(64, 68)], &[]), "read after write");
        assert!(barriers.before(Order::AfterConflicts, &[], &[range(64, 65)]), "write after read");
        assert!(barriers.before(Order::AfterConflicts, &[], &[range(64, 65)]), "write after write");
        assert!(!barriers.before(Order::AfterConflicts, &[], &[range(0, 64)]), "the barrier cleared it");
    }

    #[test]
    fn in_place_is_no_hazard_of_its_own() {
        let mut barriers = Barriers::default();
        assert!(!barriers.before(Order::AfterConflicts, &[range(0, 64)], &[range(0, 64)]));
        assert!(barriers.before(Order::AfterConflicts, &[range(0, 64)], &[range(0, 64)]));
    }

    #[test]
    fn parts_of_a_launch_do_not_wait_for_each_other() {
        let (x, y) = (range(0, 64), range(64, 128));
        let mut barriers = Barriers::default();
        assert!(
            !barriers.before(Order::BesideParts(1), &[x], &[y]) && !barriers.before(Order::BesideParts(1), &[x], &[y])
        );
        assert!(barriers.before(Order::BesideParts(2), &[x], &[y]), "another launch");
        assert!(barriers.before(Order::AfterConflicts, &[y], &[]), "a reader");
        assert!(barriers.before(Order::BesideParts(2), &[x], &[y]), "a part after it");
        assert!(!barriers.before(Order::BesideParts(2), &[x], &[y]));
        barriers.idle();
        assert!(!barriers.before(Order::BesideParts(2), &[x], &[y]));
        assert!(barriers.before(Order::AfterConflicts, &[y], &[]), "what the last part wrote");
        barriers.after_replay(&IntervalSet::default(), &IntervalSet::default());
        barriers.before_host();
        assert!(
            !barriers.before(Order::BesideParts(2), &[x], &[y]) && barriers.before_host(),
            "the host cannot see it yet"
        );
        barriers.before(Order::BesideParts(2), &[x], &[y]);
        assert!(barriers.before_host(), "nor this");
    }

    /// Every pair of conflicting commands has a barrier between them, and every barrier has a pair
    /// that needs it.
    #[test]
    fn barriers_agree_with_brute_force() {
        let mut random = Random(2);
        for _ in 0..100 {
            let mut barriers = Barriers::default();
            let mut since: Vec<(Vec<AddressRange>, Vec<AddressRange>)> = Vec::new();
            for _ in 0..60 {
                let mut some = |most: u64| -> Vec<AddressRange> {
                    (0..random.below(most + 1))
                        .map(|_| {
                            let start = random.below(400);
                            range(start, start + random.below(20))
                        })
                        .collect()
                };
                let (reads, writes) = (some(3), some(2));
                let hit = |a: &[AddressRange], b: &[AddressRange]| {
                    a.iter().any(|x| {
                        b.iter().any(|y| x.start < y.end && y.start < x.end && x.start < x.end && y.start < y.end)
                    })
                };
                let needed = since.iter().any(|(r, w)| hit(&reads, w) || hit(&writes, w) || hit(&writes, r));
                assert_eq!(barriers.before(Order::AfterConflicts, &reads, &writes), needed);
                if needed {
                    since.clear();
                }
                since.push((reads, writes));
            }
        }
    }

    #[test]
    fn a_polled_read_comes_after_all_but_others_of_its_kind() {
        let mut barriers = Barriers::default();
        assert!(!barriers.before(Order::AfterAll, &[range(0, 4)], &[range(1000, 1008)]), "nothing was recorded");
        assert!(!barriers.before(Order::AfterAll, &[range(0, 4)], &[range(1008, 1016)]));
        assert!(!barriers.before(Order::AfterConflicts, &[], &[range(64, 128)]));
        assert!(barriers.before(Order::AfterAll, &[range(0, 4)], &[range(1016, 1024)]), "whatever it was");
        assert!(!barriers.before(Order::AfterConflicts, &[range(64, 128)], &[]), "that barrier was for this, too");
        barriers.idle();
        assert!(!barriers.before(Order::AfterAll, &[range(64, 68)], &[range(1000, 1008)]));
    }

    #[test]
    fn the_host_needs_one_barrier_a_submission() {
        let mut barriers = Barriers::default();
        assert!(!barriers.before_host());
        barriers.before(Order::AfterConflicts, &[], &[range(0, 4)]);
        assert!(!barriers.is_host_visible() && barriers.before_host() && !barriers.before_host());
        barriers.submitted(Ticket(3));
        assert!(!barriers.before_host());
        barriers.submitted(Ticket(4));
        assert_eq!(barriers.shown(), Ticket(3));
        barriers.after_replay(&IntervalSet::default(), &IntervalSet::default());
        assert!(barriers.before_host());
    }
}
