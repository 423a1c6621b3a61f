//! The thread of a device that records and submits what other threads enqueue.
//!
//! Recording and submitting takes 1 to 2 µs of a host's time an operator, and the thread that enqueues has better things
//! to do. It hands a batch over when the policy says so (see [`crate::queue::policy`]); this thread takes it from there. Whoever waits for
//! the device does not wait for this thread to wake: it takes the stream's lock and records what is left by itself.
//!
//! The thread also submits what the host left pending: without it, an operator followed by other work of
//! the host would not start before the next wait. While there is activity it looks every [`TICK`]; when nothing was
//! enqueued for a whole tick and the device has nothing to do, it submits what is pending. So an operator starts within two ticks
//! (plus the timer slack of the system: none on Linux, where the thread asks for that; milliseconds on Windows).
//! After [`REST_AFTER`] without work it sleeps until the next launch wakes it. That costs the launch a system call, and a
//! processor that slept long wakes slowly: so that launch is submitted at once, by the thread that made it.

use crate::device::Shared;
use crate::queue::batch::Batch;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_micros(30);
/// Quiet ticks before the thread rests.
const REST_AFTER: u32 = 20;
/// Quiet ticks after which pending work is submitted also to a device that has work. Sooner it would gain nothing, and cut
/// chains of launches in two wherever the host holds its breath.
const PATIENCE: u32 = 8;
/// How long the thread looks for the next batch before it sleeps: a program that trains hands over the next one soon, and waking a
/// thread costs the one that does it 2 to 5 µs.
const SPIN: Duration = Duration::from_micros(50);
/// Pauses between two looks.
const PAUSES: u32 = 8;
/// Batches that may wait. A host that is further ahead records by itself.
const MOST_WAITING: u32 = 8;
/// Empty batches that are kept: as many as are ever on their way.
const MOST_SPARE: usize = MOST_WAITING as usize + 2;

#[derive(Default)]
pub(crate) struct Submitter {
    inbox: Mutex<Inbox>,
    /// Batches in the inbox.
    waiting: AtomicU32,
    /// Changes with every command.
    activity: AtomicU32,
    pending: AtomicBool,
    resting: AtomicBool,
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

impl Submitter {
    /// Starts the thread. If the system has none to give, pending work waits for the next flush.
    pub(crate) fn start(shared: &Arc<Shared>, takes_batches: bool) {
        let weak = Arc::downgrade(shared);
        let submitter = Arc::clone(shared.submitter());
        let name = "dml-submit".to_owned();
        let spawned = {
            let submitter = Arc::clone(&submitter);
            std::thread::Builder::new().name(name).spawn(move || run(&submitter, &weak))
        };
        match spawned {
            Ok(handle) => {
                let _ = submitter.thread.set(handle.thread().clone());
                let _ = submitter.takes_batches.set(takes_batches);
            }
            Err(e) => tracing::warn!("no thread for submitting work: {e}"),
        }
    }

    /// Whether the thread takes batches, and has not too many of them.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.takes_batches.get() == Some(&true) && self.waiting.load(Ordering::Relaxed) < MOST_WAITING
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

    /// Takes back a batch that was recorded.
    pub(crate) fn recorded(&self, mut batch: Batch) {
        batch.clear();
        let mut inbox = self.lock();
        if inbox.spare.len() < MOST_SPARE {
            inbox.spare.push(batch);
        }
    }

    /// A command was enqueued; `first` if nothing was pending before. Called with the queue locked. Returns whether the
    /// thread was resting, and is woken now.
    #[inline]
    pub(crate) fn enqueued(&self, first: bool) -> bool {
        // Only one thread at a time writes: no read-modify-write is needed.
        let next = self.activity.load(Ordering::Relaxed).wrapping_add(1);
        self.activity.store(next, Ordering::Relaxed);
        if first {
            self.pending.store(true, Ordering::Relaxed);
            // Against the fence in `run`: either this sees `resting`, or the thread sees `pending`.
            fence(Ordering::SeqCst);
            // Once a rest: the thread may take its time to wake.
            if self.resting.load(Ordering::Relaxed) && self.resting.swap(false, Ordering::Relaxed) {
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

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// No system call unless the thread sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_batches(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Whether a batch came within [`SPIN`].
    fn spin(&self) -> bool {
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
}

/// Has Linux wake this thread when it asked to be woken, instead of up to 50 µs later.
#[cfg(target_os = "linux")]
fn sharpen_timer() {
    unsafe extern "C" {
        fn prctl(option: std::ffi::c_int, ...) -> std::ffi::c_int;
    }
    const PR_SET_TIMERSLACK: std::ffi::c_int = 29;
    let nanoseconds: std::ffi::c_ulong = 1;
    // SAFETY: this option takes one unsigned long and changes the calling thread's timer slack only.
    unsafe { prctl(PR_SET_TIMERSLACK, nanoseconds) };
}

#[cfg(not(target_os = "linux"))]
fn sharpen_timer() {}

fn run(submitter: &Submitter, shared: &Weak<Shared>) {
    sharpen_timer();
    let mut quiet = 0;
    while !submitter.stop.load(Ordering::Relaxed) {
        let seen = submitter.activity.load(Ordering::Relaxed);
        if submitter.has_batches() {
            quiet = 0;
            let Some(device) = shared.upgrade() else { return };
            device.record_handed();
            let spins = device.spins();
            drop(device);
            if spins && submitter.spin() {
                continue;
            }
        }
        std::thread::park_timeout(TICK);
        if submitter.activity.load(Ordering::Relaxed) != seen {
            quiet = 0;
            continue;
        }
        quiet += 1;
        if submitter.pending.load(Ordering::Relaxed) {
            let Some(shared) = shared.upgrade() else { return };
            shared.flush_idle(quiet >= PATIENCE);
            continue;
        }
        if quiet < REST_AFTER {
            continue;
        }
        submitter.resting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let wanted = submitter.pending.load(Ordering::Relaxed) || submitter.has_batches();
        if !wanted && !submitter.stop.load(Ordering::Relaxed) {
            std::thread::park();
        }
        submitter.resting.store(false, Ordering::Relaxed);
        quiet = 0;
    }
}
