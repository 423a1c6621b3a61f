//! The words in which kernels report an index or another value out of range.
//!
//! Every thread has a report of eight words, whose address its launches pass to their kernels, so
//! that an error reaches the thread that launched the kernel. A kernel that finds a bad index
//! exchanges word 0 from 0 to 1 atomically, and if it was the first, writes the rest:
//!
//! | word | 0 | 1 | 2, 3 | 4, 5 | 6 | 7 |
//! |---|---|---|---|---|---|---|
//! | | code | operator id | index, low word first | size | dimension | free |
//!
//! The operator id determines the error: [`fault_id`]. The report of a thread that has ended goes
//! to any other thread, because it would be lost otherwise.
//!
//! The kernels of graphs have a report of their own, as a graph is captured once and replayed by
//! any thread; a [kernel](crate::graph::report) after each replay moves the report to the thread
//! that replayed.

use crate::backend::{Gpu, Segment};
use crate::error::Error;
use crate::memory::mapped::mapped;
use crate::memory::range::AddressRange;
use crate::threads::ThreadNumber;
use dml_gpu::MemoryClass;
use dml_gpu::traits::*;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Words of one report.
const WORDS: usize = 8;
const REPORT_BYTES: u64 = 4 * WORDS as u64;
/// Number of reports: one for graphs, one for each thread with a small number, and one that all
/// other threads share.
const REPORTS: usize = 256;
const GRAPHS: usize = 0;
const SHARED: usize = REPORTS - 1;
/// Bytes after the reports that may be read and that nobody writes.
const PLACEHOLDER_BYTES: u64 = 256;

/// Operators by id, which is the index plus one.
static OPERATORS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The error that a fault becomes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// [`Error::IndexOutOfRange`] as an `IndexError`.
    Index,
    /// The same as a `RuntimeError`.
    RuntimeIndex,
    /// [`Error::InvalidValue`]: the operator's name is the message, and the other words are unused.
    Value,
}

/// The position of the kind in an operator id.
const KIND_SHIFT: u32 = 30;

/// A number for an operator's name and a kind of fault, the same at each call: kernels report it.
/// Never 0. Takes a lock and a search, so callers keep the number.
pub fn fault_id(name: &'static str, kind: FaultKind) -> u32 {
    let kind = match kind {
        FaultKind::Index => 0,
        FaultKind::RuntimeIndex => 1,
        FaultKind::Value => 2,
    };
    operator_id(name) | kind << KIND_SHIFT
}

/// [`fault_id`] of an index error.
pub fn operator_id(name: &'static str) -> u32 {
    let mut names = OPERATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = names.iter().position(|&n| n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    at as u32 + 1
}

fn operator_name(id: u32) -> &'static str {
    let names = OPERATORS.lock().unwrap_or_else(PoisonError::into_inner);
    (id as usize).checked_sub(1).and_then(|at| names.get(at).copied()).unwrap_or("an operator")
}

/// The reports of one device.
pub(crate) struct FaultBlock {
    memory: Segment,
    words: NonNull<AtomicU32>,
    /// One more than the highest report whose address some kernel may have.
    given: AtomicUsize,
}

// SAFETY: `words` points into `memory`, which lives as long and belongs to no thread; the host
// accesses it atomically only.
unsafe impl Send for FaultBlock {}
// SAFETY: as above.
unsafe impl Sync for FaultBlock {}

/// The position of a thread's report.
fn of(thread: ThreadNumber) -> usize {
    (thread.get() as usize).min(SHARED)
}

impl FaultBlock {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, Error> {
        let memory = gpu.allocate(REPORTS as u64 * REPORT_BYTES + PLACEHOLDER_BYTES, MemoryClass::Readback)?;
        let words = mapped(&memory)?.cast();
        let block = Self { memory, words, given: AtomicUsize::new(0) };
        (0..REPORTS).for_each(|report| block.clear(report));
        Ok(block)
    }

    /// The address for a kernel that may report a fault to the calling thread.
    #[inline]
    pub(crate) fn give(&self) -> u64 {
        let report = of(ThreadNumber::here());
        if self.given.load(Ordering::Relaxed) <= report {
            self.given.fetch_max(report + 1, Ordering::Relaxed);
        }
        self.range(report).start
    }

    /// The words for the kernels of graphs.
    pub(crate) fn of_graphs(&self) -> AddressRange {
        self.range(GRAPHS)
    }

    /// The address of bytes behind the words, which nobody writes.
    #[inline]
    pub(crate) fn placeholder(&self) -> u64 {
        self.memory.address() + REPORTS as u64 * REPORT_BYTES
    }

    /// The address, if a kernel that the calling thread launched may have reported a fault. To be
    /// called with the queue locked.
    pub(crate) fn given(&self) -> Option<u64> {
        let report = of(ThreadNumber::here());
        (report < self.given.load(Ordering::Relaxed)).then(|| self.range(report).start)
    }

    fn range(&self, report: usize) -> AddressRange {
        AddressRange::new(self.memory.address() + report as u64 * REPORT_BYTES, REPORT_BYTES)
    }

    fn word(&self, report: usize, at: usize) -> &AtomicU32 {
        assert!(report < REPORTS && at < WORDS);
        // SAFETY: the segment has room for `REPORTS` times `WORDS` words, of which this is one by
        // the assertion; it is mapped, at a multiple of 64, and lives as long as `self`. Any bits
        // are a value of an atomic.
        unsafe { self.words.add(report * WORDS + at).as_ref() }
    }

    fn is_raised(&self, report: usize) -> bool {
        self.word(report, 0).load(Ordering::Acquire) != 0
    }

    /// Whether a kernel that the calling thread launched has reported a fault. The report is
    /// complete only after a wait.
    #[inline]
    pub(crate) fn raised(&self) -> bool {
        self.given.load(Ordering::Relaxed) != 0 && self.is_raised(of(ThreadNumber::here()))
    }

    /// As [`raised`](Self::raised), also for a kernel of a thread that has ended.
    pub(crate) fn raised_for_wait(&self) -> bool {
        self.raised() || self.left_behind().is_some()
    }

    /// A report of a thread that has ended.
    fn left_behind(&self) -> Option<usize> {
        let ended = |&report: &usize| report == SHARED || ThreadNumber::of(report as u32).has_ended();
        (GRAPHS + 1..self.given.load(Ordering::Relaxed)).filter(|&report| self.is_raised(report)).find(ended)
    }

    /// Takes the fault of the calling thread, or of one that has ended, and clears it. The device
    /// must be idle.
    pub(crate) fn take(&self) -> Result<(), Error> {
        let here = of(ThreadNumber::here());
        let Some(report) = self.is_raised(here).then_some(here).or_else(|| self.left_behind()) else {
            return Ok(());
        };
        let at = |i: usize| self.word(report, i).load(Ordering::Relaxed);
        let long = |i: usize| (u64::from(at(i)) | u64::from(at(i + 1)) << 32) as i64;
        let operator = operator_name(at(1) & ((1 << KIND_SHIFT) - 1));
        let error = match at(1) >> KIND_SHIFT {
            2 => Error::InvalidValue(operator),
            kind => Error::IndexOutOfRange { operator, index: long(2), size: long(4), dim: at(6), runtime: kind == 1 },
        };
        self.clear(report);
        Err(error)
    }

    fn clear(&self, report: usize) {
        for at in (0..WORDS).rev() {
            self.word(report, at).store(0, Ordering::Release);
        }
    }
}
