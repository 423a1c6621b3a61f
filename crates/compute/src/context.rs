//! What a computation is given besides its operands: the device, scratch memory, and the policy for
//! precision and determinism.

use crate::error::{Error, Result};
use crate::view::View;
use dml_engine::{AddressRange, Device, FaultKind, KernelRef};
use dml_kernel::DType;
use std::sync::Arc;

/// How products of float32 matrices are computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MatmulPrecision {
    /// In float32.
    Highest,
    /// In float32, or on matrix units with an error close to float32's: operands are split into two
    /// terms of 11 bits.
    High,
    /// Operands are rounded to bfloat16 where that is faster.
    Medium,
}

/// The settings of the framework that computations follow.
pub trait Policy {
    /// Whether results must be the same in every run, even if a faster algorithm is not
    /// deterministic.
    fn deterministic(&self) -> bool;
    /// How products of float32 matrices are computed. Only products call this, since the answer may
    /// require a call of the framework.
    fn matmul_precision(&self) -> MatmulPrecision;
    /// The 16-bit dtype to which products round float32 operands, if any.
    fn product_dtype(&self) -> Option<DType>;
}

/// The caller's policy, and its memory.
pub trait Environment {
    /// Allocates memory on the device of this index, uninitialised; it is valid until the end of
    /// the call.
    ///
    /// # Errors
    /// [`Error::Allocation`], [`Error::Engine`].
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<View>;
    /// The settings of the framework that computations follow.
    fn policy(&self) -> &dyn Policy;
    /// In [`Phase::Probe`] and [`Phase::Checked`], is told of a kernel that would be, or will be,
    /// launched; in the latter also of the memory that it writes. An environment that passes
    /// requests on to another one passes this on, too.
    ///
    /// # Errors
    /// [`Error::Engine`]; the kernel is then not launched.
    fn probe(&self, device: &Device, kernel: &KernelRef, writes: &[AddressRange]) -> Result<()>;
}

/// The phase of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Compute shapes, dtypes, strides, scratch memory and errors only: nothing is launched, and
    /// views have no memory.
    Infer,
    /// The computation is enqueued.
    Run,
    /// As [`Run`](Self::Run), but the environment is [told](Environment::probe) of each launch
    /// before it is enqueued, and may forbid it.
    Checked,
    /// As [`Infer`](Self::Infer), but kernels are built, and the environment is
    /// [told](Environment::probe) of each that would be launched.
    Probe,
}

/// What a computation is given besides its operands. Cheap to copy.
#[derive(Copy, Clone)]
pub struct Context<'a> {
    /// The device that computes.
    pub device: &'a Arc<Device>,
    /// The caller's policy and memory.
    pub environment: &'a dyn Environment,
    /// Name of the work in profiles and messages.
    pub name: &'static str,
    /// The kind of error for an index out of range.
    pub index_fault: FaultKind,
    /// Whether work is enqueued or only described.
    pub phase: Phase,
}

impl Context<'_> {
    /// Allocates contiguous memory on the device, valid until the end of the call.
    pub fn empty(&self, dtype: DType, sizes: &[i64]) -> Result<View> {
        self.empty_strided(dtype, sizes, &View::contiguous_strides(sizes))
    }

    /// Allocates memory with the given strides on the device, valid until the end of the call.
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
        matches!(self.phase, Phase::Infer | Phase::Probe)
    }

    /// Whether nothing at all is asked about kernels: they need not be built.
    #[inline]
    pub fn needs_no_kernel(&self) -> bool {
        self.phase == Phase::Infer
    }

    /// Whether the computation may enqueue work and wait for it, for example to measure a kernel.
    /// Not while a graph is captured.
    pub fn may_wait(&self) -> bool {
        !self.infers() && !self.device.is_capturing()
    }

    /// Writes `bytes` to device memory, in stream order.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if self.infers() { Ok(()) } else { Ok(self.device.upload(address, bytes)?) }
    }

    /// Reads device memory in stream order, and waits for the result.
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
