//! The mailbox of the submission thread: ended batches from the threads that enqueue, the sign that
//! commands are pending, and the memory of submitted batches on its way back. The thread itself is
//! the queue's ([`crate::queue::thread`]).

use crate::commands::list::CommandList;
use crate::kernels::kernel::KernelRef;
use crate::submit::batch::{EndedBatch, SubmittedBatch};
use crate::submit::mailbox::Mailbox;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long the submission thread spins for the next batch before it sleeps: a program that trains
/// hands over the next batch soon, and waking the thread costs the one that hands over 2 to 5 µs.
const SPIN: Duration = Duration::from_micros(50);
/// Pauses between two looks.
const PAUSES: u32 = 8;
/// The most batches in the mailbox. A host that is further ahead records by itself.
const MAX_WAITING: u32 = 8;
/// The most empty lists for later batches: as many batches as can be under way at a time.
const MAX_SPARE: usize = MAX_WAITING as usize + 2;

/// The mailbox between the threads of one device, and the empty lists for later batches. Without a
/// thread that takes batches, only the empty lists are used.
#[derive(Default)]
pub(crate) struct Handover {
    mailbox: Mailbox<EndedBatch>,
    /// Empty lists for later batches.
    spare: Mutex<Vec<CommandList>>,
    /// Whether batches are handed over. Otherwise the thread submits only what was left pending.
    takes_batches: OnceLock<bool>,
}

impl Handover {
    /// Sets the submission thread, which records batches if it `takes_batches`.
    pub(crate) fn attach(&self, thread: Thread, takes_batches: bool) {
        self.mailbox.attach(thread);
        let _ = self.takes_batches.set(takes_batches);
    }

    /// Whether the thread takes batches, and has room for another.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.takes_batches.get() == Some(&true) && self.mailbox.len() < MAX_WAITING
    }

    /// Sends a batch to the thread, which may have to be [woken](Self::wake). Called with the queue
    /// locked, so that batches arrive in the order of their tickets.
    pub(crate) fn send(&self, batch: EndedBatch) {
        self.mailbox.push(batch);
    }

    /// An empty list for a batch.
    pub(crate) fn take_empty_list(&self) -> CommandList {
        self.lock_spare().pop().unwrap_or_else(CommandList::for_batch)
    }

    /// Takes the oldest batch that was handed over. Called with the stream locked, so that they are
    /// recorded in order.
    pub(crate) fn receive(&self) -> Option<EndedBatch> {
        self.mailbox.pop()
    }

    /// A kernel of the oldest batch that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<KernelRef> {
        self.mailbox.peek(|batch| batch.commands().uncompiled().cloned())
    }

    /// Takes the memory of a batch that was submitted, for a later one.
    pub(crate) fn recycle(&self, batch: SubmittedBatch) {
        let list = batch.recycle();
        let mut spare = self.lock_spare();
        if spare.len() < MAX_SPARE {
            spare.push(list);
        }
    }

    /// Tells that a command was enqueued; `first` if nothing was pending before. Called with the
    /// queue locked. Returns whether the thread slept for lack of work, and is woken now.
    #[inline]
    pub(crate) fn notify_enqueued(&self, first: bool) -> bool {
        self.mailbox.enqueued(first)
    }

    /// Tells that nothing is pending any more. Called with the queue locked.
    #[inline]
    pub(crate) fn notify_ended(&self) {
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

    fn lock_spare(&self) -> MutexGuard<'_, Vec<CommandList>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the thread's side

    /// The thread is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.mailbox.is_stopped()
    }

    /// A number that is another one after each command.
    pub(crate) fn activity(&self) -> u32 {
        self.mailbox.activity()
    }

    /// Commands were enqueued that are in no batch yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.mailbox.has_pending()
    }

    /// Batches were handed over that nobody has recorded yet.
    pub(crate) fn has_batches(&self) -> bool {
        self.mailbox.has_items()
    }

    /// Spins for a batch. False if none came within [`SPIN`].
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
    use crate::submit::batch::PendingBatch;
    use crate::submit::errors::Errors;
    use dml_gpu::Ticket;

    fn batch(ticket: u64) -> EndedBatch {
        PendingBatch::new(CommandList::default()).end(Ticket(ticket))
    }

    #[test]
    fn batches_come_in_order_and_are_used_again() {
        let handover = Handover::default();
        assert!(!handover.has_room(), "nobody takes them");
        handover.attach(std::thread::current(), true);
        (1..=u64::from(MAX_WAITING)).for_each(|i| handover.send(batch(i)));
        assert!(!handover.has_room(), "the thread is behind");
        for i in 1..=u64::from(MAX_WAITING) {
            let next = handover.receive().map(|batch| batch.recorded(Errors::default()).submitted(Ok(())));
            assert_eq!(next.as_ref().map(SubmittedBatch::ticket), Some(Ticket(i)));
            next.into_iter().for_each(|batch| handover.recycle(batch));
        }
        assert!(handover.receive().is_none() && handover.has_room());
        assert_eq!(handover.lock_spare().len(), MAX_WAITING as usize);
    }
}
