//! The slots of polled read-backs: pairs of words in mapped memory, which one read after the other
//! uses. See [`crate::transfer::polled`].

use crate::backend::{Gpu, Segment};
use crate::error::Error;
use crate::memory::mapped::mapped;
use crate::memory::range::AddressRange;
use dml_gpu::MemoryClass;
use dml_gpu::traits::*;
use std::ptr::NonNull;
#[cfg(test)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Invocations of the kernel, and pairs of a slot.
pub(super) const PAIRS: u32 = 128;
/// The number of threads that may read at a time; other threads use the other method.
pub(super) const SLOTS: u32 = 64;
const PAIR_BYTES: u64 = 8;
const SLOT_BYTES: u64 = PAIRS as u64 * PAIR_BYTES;

/// The slots of a device.
pub(super) struct Slots {
    memory: Segment,
    /// Each word and its check.
    pairs: NonNull<[AtomicU32; 2]>,
    /// A bitmask of the free slots.
    pub(super) free: AtomicU64,
    /// The slot to try first, so that slots are reused as late as possible.
    next: AtomicU32,
    /// The number of uses of each slot since it was cleared.
    pub(super) uses: [AtomicU32; SLOTS as usize],
    /// For a test: no word ever arrives.
    #[cfg(test)]
    pub(super) hidden: AtomicBool,
}

// SAFETY: `pairs` points into `memory`, which lives as long and belongs to no thread; the host
// accesses it atomically only.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

/// One read, and its use of a slot. Dropping it without [`Slots::give_back`] keeps the
/// slot from being reused, which is right if the GPU may still write to it.
#[derive(Debug)]
pub(crate) struct PolledRead {
    slot: u32,
    number: u32,
}

/// The words of a read that have arrived.
pub(crate) struct Arrival<'a> {
    slots: &'a Slots,
    read: &'a PolledRead,
    pairs: usize,
    seen: usize,
    bytes: [u8; PAIRS as usize * 4],
}

impl PolledRead {
    /// The number of this use of the slot, which is not 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    #[cfg(test)]
    pub(super) fn slot(&self) -> u32 {
        self.slot
    }
}

impl Slots {
    /// Cleared slots in new memory.
    ///
    /// # Errors
    /// No memory; [`dml_gpu::Error::DeviceLost`].
    pub(super) fn new(gpu: &Gpu) -> Result<Self, Error> {
        let memory = gpu.allocate(u64::from(SLOTS) * SLOT_BYTES, MemoryClass::Readback)?;
        let slots = Self {
            pairs: mapped(&memory)?.cast(),
            memory,
            free: AtomicU64::new(u64::MAX),
            next: AtomicU32::new(0),
            uses: [const { AtomicU32::new(0) }; SLOTS as usize],
            #[cfg(test)]
            hidden: AtomicBool::new(false),
        };
        (0..SLOTS).for_each(|slot| slots.clear(slot));
        Ok(slots)
    }

    /// A free slot for a new read; `None` if all are in use.
    pub(super) fn take(&self) -> Option<PolledRead> {
        let from = self.next.load(Ordering::Relaxed);
        let mut free = self.free.load(Ordering::Relaxed);
        let at = loop {
            if free == 0 {
                return None;
            }
            let at = (from + free.rotate_right(from).trailing_zeros()) % SLOTS;
            // Ordered after the operations of the slot's last user, including clearing.
            match self.free.compare_exchange_weak(free, free & !(1 << at), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break at,
                Err(now) => free = now,
            }
        };
        self.next.store((at + 1) % SLOTS, Ordering::Relaxed);
        let uses = &self.uses[at as usize];
        let mut number = uses.load(Ordering::Relaxed).wrapping_add(1);
        if number == 0 {
            self.clear(at);
            number = 1;
        }
        uses.store(number, Ordering::Relaxed);
        Some(PolledRead { slot: at, number })
    }

    /// No more writes to the slot will follow: all words have arrived, or the read was not
    /// submitted.
    pub(super) fn give_back(&self, read: PolledRead) {
        self.free.fetch_or(1 << read.slot, Ordering::Release);
    }

    /// The bytes of the first `pairs` pairs of a read's slot.
    pub(super) fn range(&self, read: &PolledRead, pairs: u32) -> AddressRange {
        let slot = self.memory.address() + u64::from(read.slot) * SLOT_BYTES;
        AddressRange::new(slot, u64::from(pairs) * PAIR_BYTES)
    }

    /// The words of a read of `pairs` pairs, as they arrive.
    pub(super) fn arrival<'a>(&'a self, read: &'a PolledRead, pairs: u32) -> Arrival<'a> {
        Arrival { slots: self, read, pairs: pairs as usize, seen: 0, bytes: [0; PAIRS as usize * 4] }
    }

    fn pair(&self, slot: u32, at: usize) -> &[AtomicU32; 2] {
        assert!(slot < SLOTS && at < PAIRS as usize);
        // SAFETY: the segment has room for `SLOTS` times `PAIRS` pairs, of which this is one by the
        // assertion; it is mapped, at a multiple of 64, and lives as long as `self`. Any bits are a
        // value of an atomic. A GPU writes words of 4 aligned bytes whole.
        unsafe { self.pairs.add(slot as usize * PAIRS as usize + at).as_ref() }
    }

    /// No use has the number 0.
    fn clear(&self, slot: u32) {
        for at in 0..PAIRS as usize {
            self.pair(slot, at).iter().for_each(|half| half.store(0, Ordering::Relaxed));
        }
    }
}

impl Arrival<'_> {
    /// Whether all words have arrived.
    #[inline]
    pub(crate) fn poll(&mut self) -> bool {
        #[cfg(test)]
        if self.slots.hidden.load(Ordering::Relaxed) {
            return false;
        }
        while self.seen < self.pairs {
            let [word, check] = self.slots.pair(self.read.slot, self.seen);
            let (word, check) = (word.load(Ordering::Acquire), check.load(Ordering::Acquire));
            if word ^ check != self.read.number {
                return false;
            }
            self.bytes[4 * self.seen..][..4].copy_from_slice(&word.to_ne_bytes());
            self.seen += 1;
        }
        true
    }

    /// The words, and the fault block's word if it was asked for.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..4 * self.seen]
    }
}
