//! What goes from the threads that enqueue to the one that records and submits: ended batches, the signs that work is pending, and
//! the batches that were recorded back again. The thread itself is the queue's ([`crate::queue::thread`]).

use crate::kernels::kernel::KernelRef;
use crate::submit::batch::Batch;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long the thread looks for the next batch before it sleeps: a program that trains hands over the next one soon, and waking a
/// thread costs the one that does it 2 to 5 µs.
const SPIN: Duration = Duration::from_micros(50);
/// Pauses between two looks.
const PAUSES: u32 = 8;
/// Batches that may wait. A host that is further ahead records by itself.
const MAX_WAITING: u32 = 8;
/// Empty batches that are kept: as many as are ever on their way.
const MAX_SPARE: usize = MAX_WAITING as usize + 2;

/// Between the threads of one device. Without a thread that takes batches it is a list of spare ones.
#[derive(Default)]
pub(crate) struct Handover {
    inbox: Mutex<Inbox>,
    /// Batches in the inbox.
    waiting: AtomicU32,
    /// Changes with every command.
    activity: AtomicU32,
    pending: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
    thread: OnceLock<Thread>,
    /// Whether batches are handed over. Otherwise the thread submits only what was left pending.
    takes_batches: OnceLock<bool>,
}

#[derive(Default)]
struct Inbox {
    batches: VecDeque<Batch>,
    spare: Vec<Batch>,
}

impl Handover {
    /// There is a thread from now on, which records batches if it `takes_batches`.
    pub(crate) fn attach(&self, thread: Thread, takes_batches: bool) {
        let _ = self.thread.set(thread);
        let _ = self.takes_batches.set(takes_batches);
    }

    /// Whether the thread takes batches, and has not too many of them.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.takes_batches.get() == Some(&true) && self.waiting.load(Ordering::Relaxed) < MAX_WAITING
    }

    /// Leaves a batch for the thread, which may have to be [woken](Self::wake). Called with the queue locked, so that
    /// batches come in the order of their tickets.
    pub(crate) fn put(&self, batch: Batch) {
        self.lock().batches.push_back(batch);
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// An empty batch.
    pub(crate) fn spare(&self) -> Batch {
        self.lock().spare.pop().unwrap_or_else(Batch::new)
    }

    /// Takes the oldest batch that was handed over. Called with the stream locked, so that they are recorded in order.
    pub(crate) fn next(&self) -> Option<Batch> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let batch = self.lock().batches.pop_front();
        if batch.is_some() {
            self.waiting.fetch_sub(1, Ordering::Release);
        }
        batch
    }

    /// A kernel of the oldest batch that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<KernelRef> {
        self.lock().batches.front().and_then(Batch::uncompiled).cloned()
    }

    /// Takes back a batch that was recorded.
    pub(crate) fn recorded(&self, mut batch: Batch) {
        batch.clear();
        let mut inbox = self.lock();
        if inbox.spare.len() < MAX_SPARE {
            inbox.spare.push(batch);
        }
    }

    /// A command was enqueued; `first` if nothing was pending before. Called with the queue locked. Returns whether the
    /// thread was asleep for lack of work, and is woken now.
    #[inline]
    pub(crate) fn enqueued(&self, first: bool) -> bool {
        // Only one thread at a time writes: no read-modify-write is needed.
        let next = self.activity.load(Ordering::Relaxed).wrapping_add(1);
        self.activity.store(next, Ordering::Relaxed);
        if first {
            self.pending.store(true, Ordering::Relaxed);
            // Against the fence in `sleep`: either this sees `asleep`, or the thread sees `pending`.
            fence(Ordering::SeqCst);
            // Once a sleep: the thread may take its time to wake.
            if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
                self.wake();
                return true;
            }
        }
        false
    }

    /// Nothing is pending any more. Called with the queue locked.
    #[inline]
    pub(crate) fn taken(&self) {
        self.pending.store(false, Ordering::Relaxed);
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the thread. No system call unless it sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the thread's side

    /// The thread is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Another number after each command.
    pub(crate) fn activity(&self) -> u32 {
        self.activity.load(Ordering::Relaxed)
    }

    /// Commands were enqueued that are in no batch yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Batches were handed over that nobody recorded.
    pub(crate) fn has_batches(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
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
        self.asleep.store(true, Ordering::Relaxed);
        // Against the fence in `enqueued`.
        fence(Ordering::SeqCst);
        if !self.has_pending() && !self.has_batches() && !self.is_stopped() {
            std::thread::park();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_gpu::Ticket;
    use std::sync::Arc;

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
        assert_eq!(handover.lock().spare.len(), MAX_WAITING as usize);
    }

    /// Whatever the two do when, the thread is woken for the first command after its sleep.
    #[test]
    fn a_thread_that_sleeps_is_woken() {
        let handover = Arc::new(Handover::default());
        let thread = std::thread::spawn({
            let handover = Arc::clone(&handover);
            move || {
                while !handover.is_stopped() {
                    handover.sleep();
                    if handover.has_pending() {
                        handover.taken();
                    }
                }
            }
        });
        handover.attach(thread.thread().clone(), true);
        for _ in 0..2000 {
            handover.enqueued(true);
            while handover.has_pending() {
                std::thread::yield_now();
            }
        }
        handover.stop();
        assert!(thread.join().is_ok());
    }
}
