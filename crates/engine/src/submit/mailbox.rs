//! What goes from the threads that enqueue to one that sleeps while there is nothing to do: items
//! in their order, and the sign that something is pending which is no item yet.

use crate::sync::{AtomicBool, AtomicU32, Mutex, MutexGuard, OnceLock, Ordering, Thread, fence, park};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Between the threads of one device. Without a submission thread none is woken, and a
/// thread that waits takes the items.
pub(crate) struct Mailbox<T> {
    items: Mutex<VecDeque<T>>,
    /// How many there are.
    waiting: AtomicU32,
    /// Changes with every command.
    activity: AtomicU32,
    pending: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self {
            items: Mutex::new(VecDeque::new()),
            waiting: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            pending: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }
}

impl<T> Mailbox<T> {
    /// Has [`wake`](Self::wake) wake this thread from now on.
    pub(crate) fn attach(&self, thread: impl Into<Thread>) {
        let _ = self.thread.set(thread.into());
    }

    /// How many items there were a moment ago.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Adds an item. The thread may have to be [woken](Self::wake).
    pub(crate) fn push(&self, item: T) {
        self.lock().push_back(item);
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// Takes the oldest item. No two threads call this at a time.
    pub(crate) fn pop(&self) -> Option<T> {
        if !self.has_items() {
            return None;
        }
        let item = self.lock().pop_front();
        if item.is_some() {
            self.waiting.fetch_sub(1, Ordering::Release);
        }
        item
    }

    /// What `read` finds in the oldest item.
    pub(crate) fn peek<R>(&self, read: impl FnOnce(&T) -> Option<R>) -> Option<R> {
        self.lock().front().and_then(read)
    }

    /// A command was enqueued; `first` if nothing was pending before. No two threads call this at a
    /// time. Returns whether the thread was asleep for lack of work, and is woken now.
    #[inline]
    pub(crate) fn enqueued(&self, first: bool) -> bool {
        // Only one thread at a time writes: no read-modify-write is needed.
        let next = self.activity.load(Ordering::Relaxed).wrapping_add(1);
        self.activity.store(next, Ordering::Relaxed);
        if first {
            self.pending.store(true, Ordering::Relaxed);
            // Against the fence in `sleep`: either this sees `asleep`, or the thread sees
            // `pending`.
            fence(Ordering::SeqCst);
            // Once a sleep: the thread may take its time to wake.
            if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
                self.wake();
                return true;
            }
        }
        false
    }

    /// Nothing is pending any more. Not called while another thread calls
    /// [`enqueued`](Self::enqueued).
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

    /// The thread is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Another number after each command.
    pub(crate) fn activity(&self) -> u32 {
        self.activity.load(Ordering::Relaxed)
    }

    /// Commands were enqueued that are in no item yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// There are items that nobody took.
    pub(crate) fn has_items(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// The thread itself: sleeps until work comes or it is to end.
    pub(crate) fn sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // Against the fence in `enqueued`.
        fence(Ordering::SeqCst);
        if !self.has_pending() && !self.has_items() && !self.is_stopped() {
            park();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn items_come_in_order() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.pop(), None);
        (0..3).for_each(|i| mailbox.push(i));
        assert_eq!((mailbox.len(), mailbox.peek(|i| Some(*i))), (3, Some(0)));
        assert_eq!([(); 4].map(|()| mailbox.pop()), [Some(0), Some(1), Some(2), None]);
        assert!(!mailbox.has_items());
    }

    /// Whatever the two do when, the thread is woken for the first command after its sleep.
    #[test]
    fn a_thread_that_sleeps_is_woken() {
        let mailbox = Arc::new(Mailbox::<()>::default());
        let thread = std::thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                while !mailbox.is_stopped() {
                    mailbox.sleep();
                    if mailbox.has_pending() {
                        mailbox.taken();
                    }
                }
            }
        });
        mailbox.attach(thread.thread().clone());
        for _ in 0..2000 {
            mailbox.enqueued(true);
            while mailbox.has_pending() {
                std::thread::yield_now();
            }
        }
        mailbox.stop();
        assert!(thread.join().is_ok());
    }
}

/// A thread that nobody wakes ends a model: loom reports it as a deadlock.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// A mailbox whose thread is the one that calls this, and another thread that does `work`.
    fn with_another<T: 'static>(work: impl FnOnce(&Mailbox<T>) + 'static) -> (Arc<Mailbox<T>>, thread::JoinHandle<()>) {
        let mailbox = Arc::new(Mailbox::<T>::default());
        mailbox.attach(thread::current());
        let other = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || work(&mailbox)
        });
        (mailbox, other)
    }

    #[test]
    fn loom_the_first_command_wakes_the_thread() {
        loom::model(|| {
            let (mailbox, other) = with_another::<()>(|mailbox| {
                mailbox.enqueued(true);
            });
            while !mailbox.has_pending() {
                mailbox.sleep();
            }
            other.join().unwrap();
        });
    }

    /// Two threads enqueue, under the lock that stands for the queue's, and the thread takes what
    /// is pending under it.
    #[test]
    fn loom_commands_of_two_threads_are_all_taken() {
        loom::model(|| {
            let queue = Arc::new(Mutex::new(0));
            let mailbox = Arc::new(Mailbox::<()>::default());
            mailbox.attach(thread::current());
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (queue, mailbox) = (Arc::clone(&queue), Arc::clone(&mailbox));
                    thread::spawn(move || {
                        let mut pending = queue.lock().unwrap();
                        *pending += 1;
                        mailbox.enqueued(*pending == 1);
                    })
                })
                .collect();
            let mut taken = 0;
            while taken < 2 {
                mailbox.sleep();
                if mailbox.has_pending() {
                    let mut pending = queue.lock().unwrap();
                    taken += std::mem::take(&mut *pending);
                    mailbox.taken();
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn loom_items_come_in_order_and_wake_the_thread() {
        loom::model(|| {
            let (mailbox, other) = with_another(|mailbox| {
                for item in 0..2 {
                    mailbox.push(item);
                    mailbox.wake();
                }
            });
            for expected in 0..2 {
                let item = loop {
                    match mailbox.pop() {
                        Some(item) => break item,
                        None => mailbox.sleep(),
                    }
                };
                assert_eq!(item, expected);
            }
            assert!(!mailbox.has_items());
            other.join().unwrap();
        });
    }

    /// Two threads take items, under the lock that stands for the stream's: the mailbox's own, and
    /// one that waits for the device.
    #[test]
    fn loom_an_item_is_taken_once_and_in_order() {
        loom::model(|| {
            let taken = Arc::new(Mutex::new(Vec::new()));
            let take = |mailbox: &Mailbox<u32>, taken: &Mutex<Vec<u32>>| {
                let mut taken = taken.lock().unwrap();
                taken.extend(mailbox.pop());
            };
            let (mailbox, other) = with_another(|mailbox| (1..3).for_each(|item| mailbox.push(item)));
            let third = thread::spawn({
                let (mailbox, taken) = (Arc::clone(&mailbox), Arc::clone(&taken));
                move || take(&mailbox, &taken)
            });
            take(&mailbox, &taken);
            other.join().unwrap();
            third.join().unwrap();
            (0..2).for_each(|_| take(&mailbox, &taken));
            assert_eq!(*taken.lock().unwrap(), [1, 2]);
            assert_eq!(mailbox.len(), 0);
        });
    }

    #[test]
    fn loom_a_thread_that_is_told_to_end_wakes() {
        loom::model(|| {
            let (mailbox, other) = with_another::<()>(Mailbox::stop);
            while !mailbox.is_stopped() {
                mailbox.sleep();
            }
            other.join().unwrap();
        });
    }
}
