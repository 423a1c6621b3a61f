//! Reads of a few bytes without waiting for the end of a submit: the host polls for the words
//! themselves.
//!
//! A kernel of one workgroup writes each 32-bit word as a pair into a slot of mapped, coherent host
//! memory: the word, and the word exclusive-or the number of this use of the slot. The host polls
//! until every pair gives that number. Compared with polling a marker after a barrier for the host,
//! this saves the barrier and the latency of the marker.
//!
//! # Correctness
//!
//! Vulkan guarantees that the host sees a kernel's writes after a barrier for the host and a wait.
//! Without them the host may see the writes at any time, in any order and in pieces. So the method
//! relies only on this: an aligned 32-bit word is written whole. Let a pair hold `(a, a ^ m)`, from
//! use `m` of the slot or from zeros, and let use `n` write `(b, b ^ n)`. Of the four possible
//! states only these pass for use `n`:
//!
//! - both halves new: the word is `b`;
//! - the word old and its check new, if `a ^ (b ^ n) = n`: then `a` is `b`;
//! - the word new and its check old, if `b ^ (a ^ m) = n`: the word is `b`.
//!
//! A late write makes the host wait, and never changes the result. This requires that a pair does
//! not hold pieces of two earlier uses: a slot is reused only after all its pairs have passed, and
//! then memory holds the words of that use; the queue orders the writes of two uses like those of
//! any kernels. No number occurs twice: after 2^32 - 1 uses the slot is cleared, and the count
//! begins again at 1.
//!
//! If the words are not visible when the submit is complete, they are read again with a barrier for
//! the host, like larger reads, and the device does not use this method any more.

use crate::backend::{Gpu, Pipeline, Segment, Timeline};
use crate::error::Error;
use crate::kernels::interface::{ArgumentBlock, Interface, OptionalUnordered, ReadRange, U32, WriteRange};
use crate::kernels::kernel::KernelRef;
use crate::kernels::store::KernelStore;
use crate::memory::mapped::mapped;
use crate::memory::range::AddressRange;
use crate::parameters;
use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, Ticket};
use dml_kernel::{Builder, DType};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Invocations of the kernel, and pairs of a slot.
const PAIRS: u32 = 128;
/// The most words of a read: one pair is for the fault block.
pub(crate) const MAX_WORDS: u32 = PAIRS - 1;
/// The number of threads that may read at a time; other threads use the other method.
const SLOTS: u32 = 64;
const PAIR_BYTES: u64 = 8;
const SLOT_BYTES: u64 = PAIRS as u64 * PAIR_BYTES;

/// The polled read-backs of a device.
pub(crate) struct PolledReadback {
    memory: Segment,
    /// The word and its check.
    pairs: NonNull<[AtomicU32; 2]>,
    kernel: KernelRef,
    /// A bitmask of the free slots.
    free: AtomicU64,
    /// The slot to try first, so that slots are reused as late as possible.
    next: AtomicU32,
    /// The number of uses of each slot since it was cleared.
    uses: [AtomicU32; SLOTS as usize],
    /// The number of reads in flight, and the last ticket of the finished ones.
    polling: AtomicU32,
    polled: AtomicU64,
    /// Reads whose wait was interrupted.
    abandoned: Mutex<Vec<Abandoned>>,
    any_abandoned: AtomicBool,
    /// The host does not see the words in time.
    blind: AtomicBool,
    /// For a test.
    #[cfg(test)]
    hidden: AtomicBool,
}

// SAFETY: `pairs` points into `memory`, which lives as long and belongs to no thread; the host
// accesses it atomically only.
unsafe impl Send for PolledReadback {}
// SAFETY: as above.
unsafe impl Sync for PolledReadback {}

/// One read, and its use of a slot. Dropping it without [`PolledReadback::give_back`] keeps the
/// slot from being reused, which is right if the GPU may still write to it.
#[derive(Debug)]
pub(crate) struct PolledRead {
    at: u32,
    number: u32,
}

/// A read whose wait was interrupted.
struct Abandoned {
    read: PolledRead,
    ticket: Ticket,
    pairs: u32,
}

/// The words of a read that have arrived.
pub(crate) struct Arrival<'a> {
    device: &'a PolledReadback,
    read: &'a PolledRead,
    pairs: usize,
    seen: usize,
    bytes: [u8; PAIRS as usize * 4],
}

/// `to[i] = (word, word ^ number)` for `pairs` pairs: of `words` words from `from`, and then of the
/// first word of `fault`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PolledWords;

parameters! {
    /// The source and the slot of a read.
    PolledWords as _spec => PolledArguments, PolledParameters {
        to: WriteRange = DType::U32,
        from: ReadRange = DType::U32,
        fault: OptionalUnordered = DType::U32,
        words: U32,
        pairs: U32,
        number: U32,
    }
}

fn polled_words(kernels: &KernelStore) -> Result<KernelRef, Error> {
    let build = || {
        let b = Builder::new("polled_words", [PAIRS, 1, 1]);
        let PolledParameters { to, from, fault, words, pairs, number } = PolledWords.declare(&b);
        let i = b.local_id(0);
        b.if_(i.lt(pairs), || {
            let word = b.var(b.u32(0));
            b.if_else(i.lt(words), || word.set(from.load(i)), || word.set(fault.load(0)));
            to.store_chunk(i, &[word.get(), word.get() ^ number]);
        });
        (b.finish(), None)
    };
    kernels.get(&PolledWords, build).cloned()
}

impl PolledReadback {
    pub(crate) fn new(kernels: &KernelStore) -> Result<Self, Error> {
        let memory = kernels.gpu().allocate(u64::from(SLOTS) * SLOT_BYTES, MemoryClass::Readback)?;
        let polled = Self {
            pairs: mapped(&memory)?.cast(),
            memory,
            kernel: polled_words(kernels)?,
            free: AtomicU64::new(u64::MAX),
            next: AtomicU32::new(0),
            uses: [const { AtomicU32::new(0) }; SLOTS as usize],
            polling: AtomicU32::new(0),
            polled: AtomicU64::new(0),
            abandoned: Mutex::default(),
            any_abandoned: AtomicBool::new(false),
            blind: AtomicBool::new(false),
            #[cfg(test)]
            hidden: AtomicBool::new(false),
        };
        (0..SLOTS).for_each(|at| polled.clear(at));
        Ok(polled)
    }

    /// A slot for a new read; `None` if all are in use, or if the method does not work on this
    /// device.
    pub(crate) fn take(&self, timeline: &Timeline) -> Option<PolledRead> {
        if self.blind.load(Ordering::Relaxed) {
            return None;
        }
        if self.any_abandoned.load(Ordering::Relaxed) {
            self.take_back(timeline);
        }
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
        Some(PolledRead { at, number })
    }

    /// No more writes to the slot will follow: all words have arrived, or the read was not
    /// submitted.
    pub(crate) fn give_back(&self, read: PolledRead) {
        self.free.fetch_or(1 << read.at, Ordering::Release);
    }

    /// The kernel's pipeline.
    pub(crate) fn pipeline(&self, gpu: &Gpu) -> Result<&Pipeline, Error> {
        self.kernel.pipeline(gpu)
    }

    /// Packs the kernel's arguments for a read of whole words and, if there is one, of the first
    /// word of a fault block. Returns the range that the kernel writes.
    pub(crate) fn pass(
        &self,
        read: &PolledRead,
        from: AddressRange,
        fault: Option<u64>,
        block: &mut ArgumentBlock,
    ) -> AddressRange {
        let words = ((from.end - from.start) / 4) as u32;
        let pairs = words + u32::from(fault.is_some());
        let slot = self.memory.address() + u64::from(read.at) * SLOT_BYTES;
        let to = AddressRange::new(slot, u64::from(pairs) * PAIR_BYTES);
        PolledWords.pass(&PolledArguments { to, from, fault, words, pairs, number: read.number }, block);
        to
    }

    /// Counts a recorded read. Called with the stream locked, so that a later read has a later
    /// ticket.
    pub(crate) fn began(&self) {
        self.polling.fetch_add(1, Ordering::AcqRel);
    }

    /// A read of a ticket arrived. Earlier work is done, except other reads, as consecutive reads
    /// overlap: if no other read is in flight, returns the ticket up to which all commands are
    /// done. The driver may still be at the end of the submission.
    pub(crate) fn arrived(&self, ticket: Ticket) -> Option<Ticket> {
        self.polled.fetch_max(ticket.0, Ordering::AcqRel);
        (self.polling.fetch_sub(1, Ordering::AcqRel) == 1).then(|| Ticket(self.polled.load(Ordering::Acquire)))
    }

    /// The wait for a read of `pairs` pairs was interrupted. Its slot is free again, and the read
    /// no longer in flight, when the ticket is complete and all pairs have passed.
    pub(crate) fn abandon(&self, read: PolledRead, ticket: Ticket, pairs: u32) {
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.push(Abandoned { read, ticket, pairs });
        self.any_abandoned.store(true, Ordering::Relaxed);
    }

    /// Reclaims the slots of abandoned reads that are done.
    #[cold]
    fn take_back(&self, timeline: &Timeline) {
        let Ok(done) = timeline.completed() else { return };
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |a: &mut Abandoned| a.ticket <= done && self.arrival(&a.read, a.pairs).poll();
        for Abandoned { read, .. } in abandoned.extract_if(.., over) {
            self.polling.fetch_sub(1, Ordering::AcqRel);
            self.give_back(read);
        }
        self.any_abandoned.store(!abandoned.is_empty(), Ordering::Relaxed);
    }

    /// The words of a slot.
    pub(crate) fn arrival<'a>(&'a self, read: &'a PolledRead, pairs: u32) -> Arrival<'a> {
        Arrival { device: self, read, pairs: pairs as usize, seen: 0, bytes: [0; PAIRS as usize * 4] }
    }

    /// A read was complete and the host did not see it: the method is not used any more.
    pub(crate) fn give_up(&self) {
        self.blind.store(true, Ordering::Relaxed);
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
        if self.device.hidden.load(Ordering::Relaxed) {
            return false;
        }
        while self.seen < self.pairs {
            let [word, check] = self.device.pair(self.read.at, self.seen);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Device;

    fn open() -> Device {
        Device::open(&crate::backend::adapters().unwrap()[0], 0).unwrap()
    }

    fn read(device: &Device, from: u64) -> u32 {
        let mut bytes = [0; 4];
        device.download(from, &mut bytes).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// Each slot's count wraps around, with words that look like the numbers of other uses.
    #[test]
    fn numbers_and_slots_come_round() {
        let device = open();
        let slots = device.polled_readback();
        for uses in &slots.uses {
            uses.store(u32::MAX - 3, Ordering::Relaxed);
        }
        let x = device.allocate(4).unwrap();
        for i in 0..SLOTS * 8 {
            let value = if i % 3 == 0 { 0 } else { i.wrapping_sub(SLOTS) / 8 };
            device.upload(x, &value.to_ne_bytes()).unwrap();
            assert_eq!(read(&device, x), value);
        }
        assert!(slots.uses.iter().all(|uses| uses.load(Ordering::Relaxed) == 5), "{:?}", slots.uses);
        assert_eq!(slots.free.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn where_the_words_do_not_show_the_other_way_is_taken() {
        let device = open();
        let slots = device.polled_readback();
        let x = device.allocate(4).unwrap();
        device.upload(x, &7u32.to_ne_bytes()).unwrap();
        slots.hidden.store(true, Ordering::Relaxed);
        assert_eq!(read(&device, x), 7);
        assert!(slots.take(device.timeline()).is_none());
        device.upload(x, &8u32.to_ne_bytes()).unwrap();
        assert_eq!(read(&device, x), 8);
    }

    #[test]
    fn with_no_slot_left_the_other_way_is_taken() {
        let device = open();
        let slots = device.polled_readback();
        let held: Vec<PolledRead> = (0..SLOTS).map(|_| slots.take(device.timeline()).unwrap()).collect();
        assert!(slots.take(device.timeline()).is_none());
        let x = device.allocate(4).unwrap();
        device.upload(x, &9u32.to_ne_bytes()).unwrap();
        assert_eq!(read(&device, x), 9);
        let mut at: Vec<u32> = held.iter().map(|slot| slot.at).collect();
        at.sort_unstable();
        assert_eq!(at, (0..SLOTS).collect::<Vec<_>>());
        held.into_iter().for_each(|slot| slots.give_back(slot));
        assert_eq!(read(&device, x), 9);
    }

    #[test]
    fn the_slot_of_an_abandoned_read_comes_back_when_it_is_done() {
        let device = open();
        let slots = device.polled_readback();
        for _ in 0..2 * SLOTS {
            let read = slots.take(device.timeline()).unwrap();
            slots.began();
            slots.abandon(read, Ticket(1), 0);
            device.record_event(true).unwrap();
            device.synchronize().unwrap();
        }
        assert!(slots.take(device.timeline()).is_some());
        assert_eq!(slots.polling.load(Ordering::Relaxed), 0);
        assert_eq!(slots.abandoned.lock().unwrap().len(), 0);
    }

    /// Every state in which a pair can be seen, for numbers and words that are close to one
    /// another.
    #[test]
    fn a_pair_in_pieces_never_gives_another_word() {
        for (m, n) in (0..8u32).flat_map(|m| (1..8u32).map(move |n| (m, n))).filter(|(m, n)| m != n) {
            for (a, b) in (0..16u32).flat_map(|a| (0..16u32).map(move |b| (a, b))) {
                for (word, check) in [(a, a ^ m), (a, b ^ n), (b, a ^ m), (b, b ^ n)] {
                    assert!(word ^ check != n || word == b, "{a} {m} {b} {n}");
                }
            }
        }
    }
}
