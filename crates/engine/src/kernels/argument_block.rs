//! The arguments of a launch while they are packed.

use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::{Launch, work_of};
use crate::memory::range::AddressRange;
use std::cell::Cell;

/// The packed arguments of one launch: the parameter block, and the ranges read and written.
#[derive(Debug, Default)]
pub struct ArgumentBlock {
    params: Vec<u8>,
    table: Vec<u8>,
    reads: Vec<AddressRange>,
    writes: Vec<AddressRange>,
    mismatch: Option<&'static str>,
    /// As [`Launch::work`].
    work: u64,
    /// Replaces the address of memory without bytes.
    placeholder: u64,
}

thread_local! {
    /// The emptied block of the thread's last launch, for the next one.
    static SPARE: Cell<Option<Box<ArgumentBlock>>> = const { Cell::new(None) };
}

impl ArgumentBlock {
    /// Runs `run` with an empty block that the thread has used before, so that no launch allocates.
    #[inline]
    pub fn with_spare<R>(run: impl FnOnce(&mut Self) -> R) -> R {
        let mut block = SPARE.take().unwrap_or_default();
        let result = run(&mut block);
        block.clear();
        SPARE.set(Some(block));
        result
    }

    /// A scalar or an address, aligned to its own size, which is the layout of parameter blocks.
    #[inline]
    pub fn scalar<const N: usize>(&mut self, bytes: [u8; N]) {
        if !self.params.len().is_multiple_of(N) {
            self.params.resize(self.params.len().next_multiple_of(N), 0);
        }
        self.params.extend_from_slice(&bytes);
    }

    /// Begins the arguments of a launch. `placeholder` is a readable address. It replaces the
    /// address 0 of memory without bytes, which some drivers (Mesa 26.1's software adapter) load
    /// from even if no invocation uses the value.
    #[inline]
    pub fn begin(&mut self, placeholder: u64) {
        self.placeholder = placeholder;
    }

    /// An address. Accesses to its bytes are not ordered against other work: see
    /// [`reads`](Self::reads) and [`writes`](Self::writes).
    #[inline]
    pub fn address(&mut self, address: u64) {
        self.scalar(address.to_ne_bytes());
    }

    /// The address of a tensor or a range, or the placeholder if it has no bytes. Accesses are not
    /// ordered, as with [`address`](Self::address).
    #[inline]
    pub fn memory(&mut self, address: u64) {
        self.address(if address == 0 { self.placeholder } else { address });
    }

    /// Bytes that the kernel reads.
    #[inline]
    pub fn reads(&mut self, range: AddressRange) {
        self.work += work_of(range);
        self.reads.push(range);
    }

    /// Bytes that the kernel writes, and may read.
    #[inline]
    pub fn writes(&mut self, range: AddressRange) {
        self.work += work_of(range);
        self.writes.push(range);
    }

    /// Sets the number of operations of the kernel, if that exceeds the cost of its accesses. See
    /// [`Launch::work`].
    #[inline]
    pub fn operations(&mut self, operations: u64) {
        self.work = self.work.max(operations);
    }

    /// A word of the table (see [`Launch::table`]), whose address is the kernel's first parameter.
    pub fn table(&mut self, word: u64) {
        self.table.extend_from_slice(&word.to_ne_bytes());
    }

    /// Reports that an argument does not match the specialisation. The launch then fails instead of
    /// computing nonsense.
    #[cold]
    pub fn mismatch(&mut self, what: &'static str) {
        self.mismatch.get_or_insert(what);
    }

    /// The launch of `kernel` with these arguments.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`] after a [`mismatch`](Self::mismatch).
    #[inline]
    pub fn launch<'l>(
        &'l self,
        kernel: &'l KernelRef,
        groups: [u32; 3],
        operator: &'static str,
    ) -> Result<Launch<'l>, Error> {
        if let Some(what) = self.mismatch {
            return Err(mismatch(kernel, operator, what));
        }
        let Self { params, table, reads, writes, work, .. } = self;
        Ok(Launch { kernel, params, table, groups, reads, writes, work: *work, operator })
    }

    /// The parameter block so far.
    pub(crate) fn params(&self) -> &[u8] {
        &self.params
    }

    /// Removes the arguments, and keeps the memory for the next launch.
    #[inline]
    pub fn clear(&mut self) {
        self.params.clear();
        self.table.clear();
        self.reads.clear();
        self.writes.clear();
        self.mismatch = None;
        self.work = 0;
    }
}

#[cold]
fn mismatch(kernel: &KernelRef, operator: &'static str, what: &str) -> Error {
    Error::InvalidLaunch { operator, kernel: kernel.name().to_owned(), what: what.to_owned() }
}
