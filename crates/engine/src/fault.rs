//! The words where kernels report an index or another value out of range.
//!
//! A kernel that finds a bad index exchanges word 0 from 0 to 1 atomically, and if it was the first,
//! writes the rest:
//!
//! | word | 0 | 1 | 2, 3 | 4, 5 | 6 | 7 |
//! |---|---|---|---|---|---|---|
//! | | code | operator id | index, low word first | size | dimension | free |
//!
//! The operator id says what is raised: [`fault_id`].

use crate::error::Error;
use crate::memory::mapped::mapped;
use dml_vulkan::{Gpu, MemoryClass, Segment};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

const WORDS: usize = 8;

/// Operators by id, which is the index plus one.
static OPERATORS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// What a reported fault becomes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// [`Error::IndexOutOfRange`] as an `IndexError`.
    Index,
    /// The same as a `RuntimeError`.
    RuntimeIndex,
    /// [`Error::InvalidValue`]: the name is the message, and the rest of the block means nothing.
    Value,
}

/// Where the kind is in an operator id.
const KIND_SHIFT: u32 = 30;

/// A number for an operator's name and a kind of fault, the same each time: what a kernel reports. Never 0.
/// Takes a lock and a search: keep the number.
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

/// Bytes of the block's memory; the words are at its beginning.
const BYTES: u64 = 256;

pub(crate) struct FaultBlock {
    memory: Segment,
    words: NonNull<AtomicU32>,
    /// Some kernel may know the address.
    given: AtomicBool,
}

// SAFETY: `words` points into `memory`, which lives as long; it is accessed atomically only.
unsafe impl Send for FaultBlock {}
// SAFETY: as above.
unsafe impl Sync for FaultBlock {}

impl FaultBlock {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, Error> {
        let memory = gpu.allocate(BYTES, MemoryClass::Readback)?;
        let words = mapped(&memory)?.cast();
        let block = Self { memory, words, given: AtomicBool::new(false) };
        block.clear();
        Ok(block)
    }

    /// The address, for a kernel that may report a fault.
    #[inline]
    pub(crate) fn give(&self) -> u64 {
        if !self.given.load(Ordering::Relaxed) {
            self.given.store(true, Ordering::Relaxed);
        }
        self.memory.address()
    }

    /// The address of bytes behind the words, which nobody writes.
    #[inline]
    pub(crate) fn placeholder(&self) -> u64 {
        self.memory.address() + BYTES / 2
    }

    /// The address, if a kernel that was launched may have reported a fault. To be asked with the queue locked.
    pub(crate) fn given(&self) -> Option<u64> {
        self.given.load(Ordering::Relaxed).then(|| self.memory.address())
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < WORDS);
        // SAFETY: the segment has room for `WORDS` words, is mapped at an aligned address, and lives as long as `self`.
        unsafe { self.words.add(at).as_ref() }
    }

    /// A kernel reported a fault. The rest of the block is complete only after a wait.
    #[inline]
    pub(crate) fn raised(&self) -> bool {
        self.word(0).load(Ordering::Acquire) != 0
    }

    /// The fault, which is then forgotten. The device must be idle.
    pub(crate) fn take(&self) -> Result<(), Error> {
        if !self.raised() {
            return Ok(());
        }
        let at = |i: usize| self.word(i).load(Ordering::Relaxed);
        let long = |i: usize| (u64::from(at(i)) | u64::from(at(i + 1)) << 32) as i64;
        let operator = operator_name(at(1) & ((1 << KIND_SHIFT) - 1));
        let error = match at(1) >> KIND_SHIFT {
            2 => Error::InvalidValue(operator),
            kind => Error::IndexOutOfRange { operator, index: long(2), size: long(4), dim: at(6), runtime: kind == 1 },
        };
        self.clear();
        Err(error)
    }

    fn clear(&self) {
        for at in (0..WORDS).rev() {
            self.word(at).store(0, Ordering::Release);
        }
    }
}
