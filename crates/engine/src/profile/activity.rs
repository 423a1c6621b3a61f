//! What ran on a device and when, and what enqueued it.

use crate::kernels::kernel::KernelRef;
use dml_gpu::unix_now;
use std::cell::Cell;

/// The operator of what writes the host's bytes.
pub(crate) const UPLOAD: &str = "upload";
/// The operator of what brings bytes to the host.
pub(crate) const DOWNLOAD: &str = "download";

thread_local! {
    static CORRELATION: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's launches belong to the profiler's event of this id from now on; 0 is none.
pub fn set_correlation(id: u64) {
    CORRELATION.set(id);
}

/// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The device's index.
    pub device: usize,
    /// What ran.
    pub work: Work,
    /// The operator that enqueued it.
    pub operator: &'static str,
    /// Bytes that it named as read.
    pub bytes_read: u64,
    /// Bytes that it named as written.
    pub bytes_written: u64,
    /// What [`set_correlation`] said where it was enqueued.
    pub correlation: u64,
    /// When the host enqueued it: from, to.
    pub enqueued_ns: [u64; 2],
    /// When it ran: from, to. The activities of a device do not overlap: of two that ran at once,
    /// the second's time is what it took longer than the first.
    pub ran_ns: [u64; 2],
}

/// What an [`Activity`] did.
#[derive(Clone, Debug)]
pub enum Work {
    /// A run of a kernel, of so many workgroups.
    Kernel(KernelRef, [u32; 3]),
    /// A run of a graph of so many launches and copies: the time of all of them.
    Replay(u32),
    /// Bytes from the host.
    Upload,
    /// Bytes to the host.
    Download,
}

impl Work {
    pub(crate) fn launch(kernel: &KernelRef, groups: [u32; 3], operator: &str) -> Self {
        if operator == UPLOAD { Self::Upload } else { Self::Kernel(kernel.clone(), groups) }
    }
}

impl Activity {
    /// The kernel's name, "graph replay", "upload" or "download".
    pub fn name(&self) -> &str {
        match &self.work {
            Work::Kernel(kernel, _) => kernel.name(),
            Work::Replay(_) => "graph replay",
            Work::Upload => "upload",
            Work::Download => "download",
        }
    }
}

/// What enqueued a command.
#[derive(Copy, Clone)]
pub(crate) struct Origin {
    pub(crate) correlation: u64,
    pub(crate) enqueued_ns: [u64; 2],
}

impl Origin {
    /// The calling thread, now.
    pub(crate) fn here() -> Self {
        let now = unix_now();
        Self { correlation: CORRELATION.get(), enqueued_ns: [now, now] }
    }

    /// The command is in the queue.
    pub(crate) fn enqueued(&mut self) {
        self.enqueued_ns[1] = unix_now();
    }
}
