//! Activities of a device: which command ran, when, and which thread enqueued it.

use crate::kernels::kernel::KernelRef;
use dml_gpu::unix_now;
use std::cell::Cell;

/// The operator of uploads.
pub(crate) const UPLOAD: &str = "upload";
/// The operator of downloads.
pub(crate) const DOWNLOAD: &str = "download";

thread_local! {
    static CORRELATION: Cell<u64> = const { Cell::new(0) };
}

/// From now on the calling thread's launches belong to the profiler's event of this id; 0 is none.
pub fn set_correlation(id: u64) {
    CORRELATION.set(id);
}

/// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The device's index.
    pub device: usize,
    /// The command.
    pub work: Work,
    /// The operator that enqueued it.
    pub operator: &'static str,
    /// Bytes of its read ranges.
    pub bytes_read: u64,
    /// Bytes of its written ranges.
    pub bytes_written: u64,
    /// The id of [`set_correlation`] when it was enqueued.
    pub correlation: u64,
    /// When the host enqueued it: from, to.
    pub enqueued_ns: [u64; 2],
    /// When it ran: from, to. The activities of a device do not overlap: if two ran at once, the
    /// second's time is the additional time.
    pub ran_ns: [u64; 2],
}

/// The kind of an [`Activity`].
#[derive(Clone, Debug)]
pub enum Work {
    /// A run of a kernel with this number of workgroups.
    Kernel(KernelRef, [u32; 3]),
    /// A run of a graph with this number of launches and copies: the time of all of them.
    Replay(u32),
    /// A copy from the host.
    Upload,
    /// A copy to the host.
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

/// The origin of a command.
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

    /// The command was enqueued.
    pub(crate) fn enqueued(&mut self) {
        self.enqueued_ns[1] = unix_now();
    }
}
