//! The submission thread of a device, which records and submits what other threads enqueue.
//!
//! Recording and submitting takes 1 to 2 µs of a host's time an operator, and the thread that
//! enqueues has better things to do. It hands a batch over when the [`policy`] says so; this thread
//! takes the batch from there. A thread that waits for the device does not wait for this one to
//! wake: it takes the stream's lock, and records the batches that are left by itself.

use crate::fork::forked;
use crate::queue::device_queue::DeviceQueue;
use crate::queue::policy;
use crate::submit::handover::Handover;
use dml_environment::SUBMIT_THREAD;
use dml_gpu::AdapterKind;
use dml_gpu::traits::*;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// The thread while it runs. Dropped, it has ended: it uses the queue from time to time, and would
/// otherwise be the one to close the device, at a time of its own or while the process ends under
/// it.
pub(crate) struct SubmitThread {
    handover: Arc<Handover>,
    handle: Option<JoinHandle<()>>,
}

impl SubmitThread {
    /// Starts the thread. If the system has none to give, pending work waits for the next flush.
    pub(crate) fn start(queue: &Arc<DeviceQueue>) -> Self {
        let weak = Arc::downgrade(queue);
        let handover = Arc::clone(queue.submission.handover());
        let spawned = {
            let handover = Arc::clone(&handover);
            std::thread::Builder::new().name("dml-submit".to_owned()).spawn(move || run(&handover, &weak))
        };
        match &spawned {
            Ok(handle) => handover.attach(handle.thread().clone(), takes_batches()),
            Err(e) => tracing::warn!("no thread for submitting work: {e}"),
        }
        Self { handover, handle: spawned.ok() }
    }
}

impl Drop for SubmitThread {
    fn drop(&mut self) {
        self.handover.stop();
        // A forked child has the handle, and no thread to wait for.
        if forked() {
            return;
        }
        if self.handle.take().is_some_and(|handle| handle.join().is_err()) {
            tracing::error!("the thread that submits work panicked");
        }
    }
}

/// Whether the thread records and submits what others enqueue: where it has a processor to itself.
fn takes_batches() -> bool {
    SUBMIT_THREAD.get().unwrap_or_else(|| std::thread::available_parallelism().is_ok_and(|n| n.get() >= 4))
}

fn run(handover: &Handover, queue: &Weak<DeviceQueue>) {
    sharpen_timer();
    let mut quiet = 0;
    while !handover.is_stopped() {
        let seen = handover.activity();
        if handover.has_batches() {
            quiet = 0;
            let Some(queue) = queue.upgrade() else { return };
            queue.submission.submit_handed_over(|| handover.is_stopped());
            // Not where the driver computes on the processor that this would keep busy.
            let spins = queue.submission.gpu().info().kind != AdapterKind::Software;
            drop(queue);
            if spins && handover.spin() {
                continue;
            }
        }
        std::thread::park_timeout(policy::TICK);
        if handover.activity() != seen {
            quiet = 0;
            continue;
        }
        quiet += 1;
        if handover.has_pending() {
            let Some(queue) = queue.upgrade() else { return };
            queue.flush_quiet(policy::quiet(quiet));
        } else if policy::may_sleep(quiet) {
            handover.sleep();
            quiet = 0;
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
    // SAFETY: the C library's function, declared as Linux has it. This option takes one unsigned
    // long, and changes the calling thread's timer slack only.
    unsafe { prctl(PR_SET_TIMERSLACK, nanoseconds) };
}

#[cfg(not(target_os = "linux"))]
fn sharpen_timer() {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::queue::device_queue::DeviceQueue;

    #[test]
    fn the_thread_has_ended_when_it_is_dropped() {
        let gpu = || crate::backend::adapters().unwrap()[0].open().unwrap();
        for _ in 0..20 {
            let queue = Arc::new(DeviceQueue::new(gpu(), 0).unwrap());
            let thread = SubmitThread::start(&queue);
            queue.submission.handover().notify_enqueued(true);
            drop(thread);
            assert_eq!((Arc::strong_count(&queue), Arc::weak_count(&queue)), (1, 0));
        }
    }
}
