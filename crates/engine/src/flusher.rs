//! Submits work that the host left pending: without it, an operator followed by other work of the
//! host would not start before the next wait.
//!
//! One thread a device. While there is activity it looks every [`TICK`]; when nothing was enqueued for a
//! whole tick it submits what is pending. So an operator starts within two ticks
//! (plus the timer slack of the system: none on Linux, where the thread asks for that; milliseconds on Windows, where
//! the thread is a backstop only).
//! After [`REST_AFTER`] without work it sleeps until the next launch wakes it; that costs the launch
//! a system call, once in a batch at most.

use crate::device::Shared;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::Duration;

const TICK: Duration = Duration::from_micros(30);
/// Quiet ticks before the thread rests.
const REST_AFTER: u32 = 20;

#[derive(Default)]
pub(crate) struct Flusher {
    /// Changes with every command.
    activity: AtomicU32,
    pending: AtomicBool,
    resting: AtomicBool,
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Flusher {
    /// Starts the thread. If the system has none to give, pending work waits for the next flush.
    pub(crate) fn start(shared: &Arc<Shared>) {
        let weak = Arc::downgrade(shared);
        let flusher = Arc::clone(shared.flusher());
        let name = "dml-flush".to_owned();
        let spawned = {
            let flusher = Arc::clone(&flusher);
            std::thread::Builder::new().name(name).spawn(move || run(&flusher, &weak))
        };
        match spawned {
            Ok(handle) => drop(flusher.thread.set(handle.thread().clone())),
            Err(e) => tracing::warn!("no thread for submitting idle work: {e}"),
        }
    }

    /// A command was enqueued; `first` if nothing was pending before. Called with the queue locked.
    #[inline]
    pub(crate) fn enqueued(&self, first: bool) {
        // Only one thread at a time writes: no read-modify-write is needed.
        let next = self.activity.load(Ordering::Relaxed).wrapping_add(1);
        self.activity.store(next, Ordering::Relaxed);
        if first {
            self.pending.store(true, Ordering::Relaxed);
            // Against the fence in `run`: either this sees `resting`, or the thread sees `pending`.
            fence(Ordering::SeqCst);
            if self.resting.load(Ordering::Relaxed) {
                self.wake();
            }
        }
    }

    /// Nothing is pending any more. Called with the queue locked.
    #[inline]
    pub(crate) fn flushed(&self) {
        self.pending.store(false, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
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

fn run(flusher: &Flusher, shared: &Weak<Shared>) {
    sharpen_timer();
    let mut quiet = 0;
    while !flusher.stop.load(Ordering::Relaxed) {
        let seen = flusher.activity.load(Ordering::Relaxed);
        std::thread::park_timeout(TICK);
        if flusher.activity.load(Ordering::Relaxed) != seen {
            quiet = 0;
            continue;
        }
        if flusher.pending.load(Ordering::Relaxed) {
            quiet = 0;
            let Some(shared) = shared.upgrade() else { return };
            shared.flush_idle();
            continue;
        }
        quiet += 1;
        if quiet < REST_AFTER {
            continue;
        }
        flusher.resting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !flusher.pending.load(Ordering::Relaxed) && !flusher.stop.load(Ordering::Relaxed) {
            std::thread::park();
        }
        flusher.resting.store(false, Ordering::Relaxed);
        quiet = 0;
    }
}
