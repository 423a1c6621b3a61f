//! Offsets in a ring of host-visible memory, reused when the GPU is done with them.

use dml_gpu::Ticket;
use std::collections::VecDeque;

/// Offsets in a ring of `bytes` bytes, without the memory.
///
/// Regions are taken in order; at a submit all regions taken so far get that submit's ticket, and
/// they are free again when the ticket is complete.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: u64,
    /// All bytes ever taken, including the gaps at the end of the ring.
    head: u64,
    /// All bytes ever given back.
    tail: u64,
    /// The value of `head` at each submit that is not complete.
    marks: VecDeque<(Ticket, u64)>,
}

impl Ring {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, head: 0, tail: 0, marks: VecDeque::with_capacity(256) }
    }

    /// A region's offset, aligned to `align` (a divisor of the ring's size), or `None` if there is
    /// no room.
    pub(crate) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let mut start = self.head.next_multiple_of(align);
        if start % self.bytes + bytes > self.bytes {
            start = start.next_multiple_of(self.bytes);
        }
        let end = start + bytes;
        if bytes > self.bytes || end - self.tail > self.bytes {
            return None;
        }
        self.head = end;
        Some(start % self.bytes)
    }

    /// All regions taken so far belong to `ticket`.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        if self.marks.back().map_or(self.tail, |m| m.1) != self.head {
            self.marks.push_back((ticket, self.head));
        }
    }

    /// Gives back the regions of tickets up to `completed`.
    pub(crate) fn retire(&mut self, completed: Ticket) {
        while let Some(&(ticket, head)) = self.marks.front() {
            if ticket > completed {
                break;
            }
            self.tail = head;
            self.marks.pop_front();
        }
    }

    /// The ticket to wait for to get room, if there is one.
    pub(crate) fn oldest(&self) -> Option<Ticket> {
        self.marks.front().map(|m| m.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_testing::Random;

    #[test]
    fn full_until_retired() {
        let mut ring = Ring::new(1024);
        assert_eq!(ring.take(1000, 16), Some(0));
        assert_eq!(ring.take(100, 16), None);
        assert_eq!(ring.oldest(), None);
        ring.submitted(Ticket(1));
        assert_eq!(ring.oldest(), Some(Ticket(1)));
        ring.retire(Ticket(1));
        assert_eq!(ring.take(100, 16), Some(0), "wraps rather than cross the end");
        assert_eq!(ring.take(2000, 16), None);
    }

    #[test]
    fn live_regions_never_overlap() {
        let mut random = Random(3);
        let mut ring = Ring::new(4096);
        let mut live: Vec<(u64, u64, u64)> = Vec::new(); // start, end, ticket or 0
        let (mut ticket, mut done) = (0, 0);
        for _ in 0..20_000 {
            match random.below(8) {
                0 => {
                    ticket += 1;
                    ring.submitted(Ticket(ticket));
                    live.iter_mut().filter(|r| r.2 == 0).for_each(|r| r.2 = ticket);
                }
                1 if done < ticket => {
                    done += 1 + random.below(ticket - done);
                    ring.retire(Ticket(done));
                    live.retain(|r| r.2 == 0 || r.2 > done);
                }
                _ => {
                    let bytes = 1 + random.below(600);
                    if let Some(start) = ring.take(bytes, 16) {
                        assert_eq!(start % 16, 0);
                        assert!(start + bytes <= 4096);
                        assert!(live.iter().all(|r| r.1 <= start || start + bytes <= r.0));
                        live.push((start, start + bytes, 0));
                    } else {
                        assert!(!live.is_empty(), "an empty ring has room");
                    }
                }
            }
        }
    }
}
