//! What goes from the threads that enqueue to the one that records and submits: ended batches, the
//! signs that work is pending, and the batches that were recorded back again. The thread itself is
//! the queue's ([`crate::queue::thread`]).

use crate::kernels::kernel::KernelRef;
use crate::submit::batch::Batch;
use crate::submit::mailbox::Mailbox;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long the thread looks for the next batch before it sleeps: a program that trains hands over
/// the next one soon, and waking a thread costs the one that does it 2 to 5 µs.
const SPIN: Duration = Duration::from_micros(50);
/// Pauses between two looks.
const PAUSES: u32 = 8;
/// Batches that may wait. A host that is further ahead records by itself.
const MAX_WAITING: u32 = 8;
/// Empty batches that are kept: as many as are ever on their way.
const MAX_SPARE: usize = MAX_WAITING as usize + 2;

/// Between the threads of one device. Without a thread that takes batches it is a list of spare
/// ones.
#[derive(Default)]
pub(crate) struct Handover {
    mailbox: Mailbox<Batch>,
    spare: Mutex<Vec<Batch>>,
    /// Whether batches are handed over. Otherwise the thread submits only what was left pending.
    takes_batches: OnceLock<bool>,
}

impl Handover {
    /// There is a thread from now on, which records batches if it `takes_batches`.
    pub(crate) fn attach(&self, thread: Thread, takes_batches: bool) {
        self.mailbox.attach(thread);
        let _ = self.takes_batches.set(takes_batches);
    }

    /// Whether the thread takes batches, and has not too many of them.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.takes_batches.get() == Some(&true) && self.mailbox.len() < MAX_WAITING
    }

    /// Leaves a batch for the thread, which may have to be [woken](Self::wake). Called with the
    /// queue locked, so that batches come in the order of their tickets.
    pub(crate) fn put(&self, batch: Batch) {
        self.mailbox.push(batch);
    }

    /// An empty batch.
    pub(crate) fn spare(&self) -> Batch {
        self.lock_spare().pop().unwrap_or_else(Batch::new)
    }

    /// Takes the oldest batch that was handed over. Called with the stream locked, so that they are
    /// recorded in order.
    pub(crate) fn next(&self) -> Option<Batch> {
        self.mailbox.pop()
    }

    /// A kernel of the oldest batch that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<KernelRef> {
        self.mailbox.peek(|batch| batch.uncompiled().cloned())
    }

    /// Takes back a batch that was recorded.
    pub(crate) fn recorded(&self, mut batch: Batch) {
        batch.clear();
        let mut spare = self.lock_spare();
        if spare.len() < MAX_SPARE {
            spare.push(batch);
        }
    }

    /// A command was enqueued; `first` if nothing was pending before. Called with the queue locked.
    /// Returns whether the thread was asleep for lack of work, and is woken now.
    #[inline]
    pub(crate) fn enqueued(&self, first: bool) -> bool {
        self.mailbox.enqueued(first)
    }

    /// Nothing is pending any more. Called with the queue locked.
    #[inline]
    pub(crate) fn taken(&self) {
        self.mailbox.taken();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.mailbox.stop();
    }

    /// Wakes the thread. No system call unless it sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        self.mailbox.wake();
    }

    fn lock_spare(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the thread's side

    /// The thread is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.mailbox.is_stopped()
    }

    /// Another number after each command.
    pub(crate) fn activity(&self) -> u32 {
        self.mailbox.activity()
    }

    /// Commands were enqueued that are in no batch yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.mailbox.has_pending()
    }

    /// Batches were handed over that nobody recorded.
    pub(crate) fn has_batches(&self) -> bool {
        self.mailbox.has_items()
    }

    /// Whether a batch came within [`SPIN`].
    pub(crate) fn spin(&self) -> bool {
        let start = Instant::now();
        while !self.has_batches() {
            if start.elapsed() > SPIN {
                return false;
            }
            // The thread that enqueues may share the processor's core with this one.
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        true
    }

    /// Sleeps until work comes or the thread is to end.
    pub(crate) fn sleep(&self) {
        self.mailbox.sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_gpu::Ticket;

    fn batch(ticket: u64) -> Batch {
        let mut batch = Batch::new();
        batch.ticket = Ticket(ticket);
        batch
    }

    #[test]
    fn batches_come_in_order_and_are_used_again() {
        let handover = Handover::default();
        assert!(!handover.has_room(), "nobody takes them");
        handover.attach(std::thread::current(), true);
        (1..=u64::from(MAX_WAITING)).for_each(|i| handover.put(batch(i)));
        assert!(!handover.has_room(), "the thread is behind");
        for i in 1..=u64::from(MAX_WAITING) {
            let next = handover.next().map(|batch| (batch.ticket, handover.recorded(batch)));
            assert_eq!(next, Some((Ticket(i), ())));
        }
        assert!(handover.next().is_none() && handover.has_room());
        assert_eq!(handover.lock_spare().len(), MAX_WAITING as usize);
    }
}
