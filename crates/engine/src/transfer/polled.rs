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
//! then memory holds the words of that use; the queue orders the writes of two uses like writes of
//! any kernels. No number occurs twice: after 2^32 - 1 uses the slot is cleared, and the count
//! begins again at 1.
//!
//! If the words are not visible when the submit is complete, they are read again with a barrier for
//! the host, like larger reads, and the device does not use this method any more.

use crate::backend::{Gpu, Pipeline, Timeline};
use crate::error::Error;
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::interface::{Interface, OptionalUnordered, ReadRange, U32, WriteRange};
use crate::kernels::kernel::KernelRef;
use crate::kernels::store::KernelStore;
use crate::memory::range::AddressRange;
use crate::parameters;
use crate::transfer::polled_slots::{Arrival, PAIRS, PolledRead, Slots};
use dml_environment::DRY_RUN;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use dml_kernel::{Builder, DType};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most words of a read: one pair is for the fault block.
pub(crate) const MAX_WORDS: u32 = PAIRS - 1;

/// The polled read-backs of a device.
pub(crate) struct PolledReadback {
    slots: Slots,
    kernel: KernelRef,
    /// The number of reads in flight, and the last ticket of the finished ones.
    polling: AtomicU32,
    polled: AtomicU64,
    /// Reads whose wait was interrupted.
    abandoned: Mutex<Vec<Abandoned>>,
    any_abandoned: AtomicBool,
    /// The host does not see the words in time.
    blind: AtomicBool,
}

/// A read whose wait was interrupted.
struct Abandoned {
    read: PolledRead,
    ticket: Ticket,
    pairs: u32,
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
        Ok(Self {
            slots: Slots::new(kernels.gpu())?,
            kernel: polled_words(kernels)?,
            polling: AtomicU32::new(0),
            polled: AtomicU64::new(0),
            abandoned: Mutex::default(),
            any_abandoned: AtomicBool::new(false),
            blind: AtomicBool::new(DRY_RUN.get() == Some(true)),
        })
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
        self.slots.take()
    }

    /// No more writes to the slot will follow: all words have arrived, or the read was not
    /// submitted.
    pub(crate) fn give_back(&self, read: PolledRead) {
        self.slots.give_back(read);
    }

    /// The words of a read of `pairs` pairs, as they arrive.
    pub(crate) fn arrival<'a>(&'a self, read: &'a PolledRead, pairs: u32) -> Arrival<'a> {
        self.slots.arrival(read, pairs)
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
        let to = self.slots.range(read, pairs);
        PolledWords.pass(&PolledArguments { to, from, fault, words, pairs, number: read.number() }, block);
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

    /// A read was complete and the host did not see it: the method is not used any more.
    pub(crate) fn give_up(&self) {
        self.blind.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Device;
    use crate::transfer::polled_slots::SLOTS;

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
        let polled = device.polled_readback();
        for uses in &polled.slots.uses {
            uses.store(u32::MAX - 3, Ordering::Relaxed);
        }
        let x = device.allocate(4).unwrap();
        for i in 0..SLOTS * 8 {
            let value = if i % 3 == 0 { 0 } else { i.wrapping_sub(SLOTS) / 8 };
            device.upload(x, &value.to_ne_bytes()).unwrap();
            assert_eq!(read(&device, x), value);
        }
        assert!(polled.slots.uses.iter().all(|uses| uses.load(Ordering::Relaxed) == 5), "{:?}", polled.slots.uses);
        assert_eq!(polled.slots.free.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn where_the_words_do_not_show_the_other_way_is_taken() {
        let device = open();
        let polled = device.polled_readback();
        let x = device.allocate(4).unwrap();
        device.upload(x, &7u32.to_ne_bytes()).unwrap();
        polled.slots.hidden.store(true, Ordering::Relaxed);
        assert_eq!(read(&device, x), 7);
        assert!(polled.take(device.timeline()).is_none());
        device.upload(x, &8u32.to_ne_bytes()).unwrap();
        assert_eq!(read(&device, x), 8);
    }

    #[test]
    fn with_no_slot_left_the_other_way_is_taken() {
        let device = open();
        let polled = device.polled_readback();
        let reads: Vec<PolledRead> = (0..SLOTS).map(|_| polled.take(device.timeline()).unwrap()).collect();
        assert!(polled.take(device.timeline()).is_none());
        let x = device.allocate(4).unwrap();
        device.upload(x, &9u32.to_ne_bytes()).unwrap();
        assert_eq!(read(&device, x), 9);
        let mut at: Vec<u32> = reads.iter().map(|read| read.slot()).collect();
        at.sort_unstable();
        assert_eq!(at, (0..SLOTS).collect::<Vec<_>>());
        reads.into_iter().for_each(|read| polled.give_back(read));
        assert_eq!(read(&device, x), 9);
    }

    #[test]
    fn the_slot_of_an_abandoned_read_comes_back_when_it_is_done() {
        let device = open();
        let polled = device.polled_readback();
        for _ in 0..2 * SLOTS {
            let read = polled.take(device.timeline()).unwrap();
            polled.began();
            polled.abandon(read, Ticket(1), 0);
            device.record_event(true).unwrap();
            device.synchronize().unwrap();
        }
        assert!(polled.take(device.timeline()).is_some());
        assert_eq!(polled.polling.load(Ordering::Relaxed), 0);
        assert_eq!(polled.abandoned.lock().unwrap().len(), 0);
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
