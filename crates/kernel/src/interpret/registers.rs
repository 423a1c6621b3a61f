//! Values of all invocations of a workgroup.

use crate::ir::{Kernel, ValueId};

/// For every value one word for each lane and invocation.
pub(super) struct Registers {
    /// Invocations in a workgroup.
    pub(super) width: usize,
    /// The words of each value. Operands precede the values computed from them.
    slots: Vec<Slot>,
    words: Vec<u64>,
}

/// The lanes of one value, each of which takes `width` words.
struct Slot {
    /// Lanes of the values before this one.
    first: usize,
    lanes: usize,
}

impl Registers {
    pub(super) fn new(k: &Kernel) -> Registers {
        let width = k.workgroup_size.iter().product::<u32>() as usize;
        let mut next = 0;
        let slots = k
            .values
            .iter()
            .map(|value| {
                let slot = Slot { first: next, lanes: value.ty.lanes as usize };
                next += slot.lanes;
                slot
            })
            .collect();
        Registers { width, slots, words: vec![0; next * width] }
    }

    /// Copies a lane of one value to a lane of another.
    pub(super) fn copy_lane(&mut self, to: (ValueId, usize), from: (ValueId, usize)) {
        let (from, to) = (self.at(from.0, from.1), self.at(to.0, to.1));
        self.words.copy_within(from..from + self.width, to);
    }

    fn at(&self, id: ValueId, lane: usize) -> usize {
        (self.slots[id as usize].first + lane) * self.width
    }

    pub(super) fn lane(&self, id: ValueId, lane: usize) -> &[u64] {
        let at = self.at(id, lane);
        &self.words[at..at + self.width]
    }

    pub(super) fn lane_mut(&mut self, id: ValueId, lane: usize) -> &mut [u64] {
        let at = self.at(id, lane);
        let width = self.width;
        &mut self.words[at..at + width]
    }

    pub(super) fn lanes(&self, id: ValueId) -> usize {
        self.slots[id as usize].lanes
    }

    pub(super) fn map1(&mut self, id: ValueId, a: ValueId, f: impl Fn(u64) -> u64) {
        for lane in 0..self.lanes(id) {
            let (a, d, w) = (self.at(a, lane), self.at(id, lane), self.width);
            let (source, target) = self.words.split_at_mut(d);
            for (d, a) in target[..w].iter_mut().zip(&source[a..a + w]) {
                *d = f(*a);
            }
        }
    }

    pub(super) fn map2(&mut self, id: ValueId, a: ValueId, b: ValueId, f: impl Fn(u64, u64) -> u64) {
        for lane in 0..self.lanes(id) {
            let (a, b, d, w) = (self.at(a, lane), self.at(b, lane), self.at(id, lane), self.width);
            let (source, target) = self.words.split_at_mut(d);
            for ((d, a), b) in target[..w].iter_mut().zip(&source[a..a + w]).zip(&source[b..b + w]) {
                *d = f(*a, *b);
            }
        }
    }

    pub(super) fn map3(&mut self, id: ValueId, [a, b, c]: [ValueId; 3], f: impl Fn(u64, u64, u64) -> u64) {
        for lane in 0..self.lanes(id) {
            // The bool of a selection is one lane for all.
            let a_lane = if self.lanes(a) == 1 { 0 } else { lane };
            let (a, b, c, d) = (self.at(a, a_lane), self.at(b, lane), self.at(c, lane), self.at(id, lane));
            let w = self.width;
            let (source, target) = self.words.split_at_mut(d);
            for (i, d) in target[..w].iter_mut().enumerate() {
                *d = f(source[a + i], source[b + i], source[c + i]);
            }
        }
    }
}
