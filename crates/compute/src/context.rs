//! What a computation is given beside its operands: the device, scratch memory and how results are
//! to be computed.

use crate::error::{Error, Result};
use crate::view::View;
use dml_engine::{Device, FaultKind};
use dml_kernel::DType;
use std::sync::Arc;

/// How products of float32 matrices are computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MatmulPrecision {
    /// In float32.
    Highest,
    /// In float32, or on matrix units as near to it in each sum: factors in two terms of 11 bits.
    High,
    /// Factors rounded to bfloat16, where that is faster.
    Medium,
}

/// What the caller of a computation decides and provides.
pub trait Environment {
    /// New memory on the device of this index, uninitialised; it stays for the time of the call.
    ///
    /// # Errors
    /// [`Error::Allocation`], [`Error::Engine`].
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<View>;
    /// Whether results must be the same in each run, where a faster way would not give that.
    fn deterministic(&self) -> bool;
    /// How products of float32 are computed. Products alone ask: the answer may take a call of the
    /// framework.
    fn matmul_precision(&self) -> MatmulPrecision;
    /// The dtype of 16 bits that products round operands of float32 to, if any.
    fn product_dtype(&self) -> Option<DType>;
}

/// The phase of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Only shapes, dtypes, strides, scratch memory and errors are wanted: nothing is launched, and
    /// views have no memory.
    Infer,
    /// The computation is enqueued.
    Run,
}

/// What a computation is given beside its operands. Cheap to copy.
#[derive(Copy, Clone)]
pub struct Context<'a> {
    /// The device that computes.
    pub device: &'a Arc<Device>,
    /// Scratch memory, and the caller's choices.
    pub environment: &'a dyn Environment,
    /// What the work is called in profiles and messages.
    pub name: &'static str,
    /// The kind of error that an index out of range is.
    pub index_fault: FaultKind,
    /// Whether work is enqueued, or only described.
    pub phase: Phase,
}

impl Context<'_> {
    /// New contiguous memory on the device. It stays for the time of the call.
    pub fn empty(&self, dtype: DType, sizes: &[i64]) -> Result<View> {
        self.empty_strided(dtype, sizes, &View::contiguous_strides(sizes))
    }

    /// New memory on the device, of any strides. It stays for the time of the call.
    pub fn empty_strided(&self, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<View> {
        self.environment.allocate(self.device.index() as u8, dtype, sizes, strides)
    }

    /// The same context on another device.
    pub fn on<'d>(&'d self, device: &'d Arc<Device>) -> Context<'d> {
        Context { device, ..*self }
    }

    /// Whether the computation is only described: nothing may be launched, read or written.
    #[inline]
    pub fn infers(&self) -> bool {
        self.phase == Phase::Infer
    }

    /// Whether the computation may enqueue work of its own and wait for it, such as a trial of a
    /// kernel. Not while a graph is captured.
    pub fn may_wait(&self) -> bool {
        !self.infers() && !self.device.is_capturing()
    }

    /// Writes `bytes` to device memory, in order with the work around it.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if self.infers() { Ok(()) } else { Ok(self.device.upload(address, bytes)?) }
    }

    /// Reads device memory, after the work before it. Waits.
    ///
    /// # Errors
    /// [`Error::NeedsData`] if the computation is only described, [`Error::Engine`].
    pub fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        if self.infers() {
            return Err(Error::NeedsData(format!("{} reads values of its operands", self.name)));
        }
        Ok(self.device.download(address, bytes)?)
    }
}
