//! The cost of building and compiling kernels.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The cost of kernels in this process so far, on all devices. Times are in nanoseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Kernels that the driver compiled, or found in the pipeline cache.
    pub kernels: u64,
    /// Time to build and emit kernels, added up over all threads.
    pub emit_ns: u64,
    /// The driver's time, added up over all threads.
    pub compile_ns: u64,
    /// The longest compilation of the driver.
    pub longest_ns: u64,
    /// Time during which work that was to be submitted waited for kernels, or compiled them itself.
    pub wait_ns: u64,
}

static KERNELS: AtomicU64 = AtomicU64::new(0);
static EMIT_NS: AtomicU64 = AtomicU64::new(0);
static COMPILE_NS: AtomicU64 = AtomicU64::new(0);
static LONGEST_NS: AtomicU64 = AtomicU64::new(0);
static WAIT_NS: AtomicU64 = AtomicU64::new(0);

/// The cost of kernels in this process so far.
pub fn kernel_stats() -> KernelStats {
    let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    KernelStats {
        kernels: read(&KERNELS),
        emit_ns: read(&EMIT_NS),
        compile_ns: read(&COMPILE_NS),
        longest_ns: read(&LONGEST_NS),
        wait_ns: read(&WAIT_NS),
    }
}

fn nanoseconds_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// Counts a kernel that was built and emitted.
pub(super) fn emitted(start: Instant) {
    EMIT_NS.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
}

/// Counts a kernel that the driver compiled.
pub(super) fn compiled(start: Instant) {
    let taken = nanoseconds_since(start);
    KERNELS.fetch_add(1, Ordering::Relaxed);
    COMPILE_NS.fetch_add(taken, Ordering::Relaxed);
    LONGEST_NS.fetch_max(taken, Ordering::Relaxed);
}

/// Counts the time of a thread that waited for a kernel, or compiled it to go on.
pub(super) fn waited(start: Instant) {
    WAIT_NS.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
}
