//! The state that every object of an opened device holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windows::Win32::Graphics::Direct3D12::{ID3D12CommandQueue, ID3D12Device};

use crate::adapter::{AdapterShared, compute_queue};
use crate::descriptor_table::DescriptorTable;
use crate::error::{Error, from_hresult};

pub(crate) struct DeviceShared {
    pub(crate) raw: ID3D12Device,
    pub(crate) adapter: Arc<AdapterShared>,
    pub(crate) table: DescriptorTable,
    /// How long a wait lasts without progress before the device counts as lost.
    pub(crate) timeout: Duration,
    queue: Mutex<ID3D12CommandQueue>,
    lost: AtomicBool,
    hung: AtomicBool,
}

impl DeviceShared {
    pub(crate) fn open(adapter: &Arc<AdapterShared>, timeout: Duration) -> Result<Arc<Self>, Error> {
        let raw = adapter.device()?;
        Ok(Arc::new(Self {
            table: DescriptorTable::new(&raw)?,
            queue: Mutex::new(compute_queue(&raw)?),
            adapter: Arc::clone(adapter),
            timeout,
            lost: AtomicBool::new(false),
            hung: AtomicBool::new(false),
            raw,
        }))
    }

    /// The queue. Many threads may use Direct3D's queues; the lock keeps a submission and its
    /// signal together.
    pub(crate) fn queue(&self) -> MutexGuard<'_, ID3D12CommandQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Fails if the device is lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_lost() { Err(Error::DeviceLost) } else { Ok(()) }
    }

    pub(crate) fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// The GPU did not finish in time: objects that it may still use are leaked.
    pub(crate) fn mark_hung(&self) {
        self.hung.store(true, Ordering::Relaxed);
        self.mark_lost();
    }

    pub(crate) fn is_hung(&self) -> bool {
        self.hung.load(Ordering::Relaxed)
    }

    /// Maps a status. Records the loss of the device, and the size of a failed allocation.
    pub(crate) fn error_of(&self, call: &'static str, error: &windows::core::Error, bytes: u64) -> Error {
        match from_hresult(call, error) {
            Error::DeviceLost => self.lost(call),
            Error::OutOfMemory { .. } => Error::OutOfMemory { requested: bytes },
            other => other,
        }
    }

    pub(crate) fn error(&self, call: &'static str, error: &windows::core::Error) -> Error {
        self.error_of(call, error, 0)
    }

    /// Marks the device as lost, and logs it.
    pub(crate) fn lost(&self, call: &'static str) -> Error {
        if !self.is_lost() {
            tracing::error!("{}: device lost in {call}", self.adapter.info.name);
        }
        self.mark_lost();
        Error::DeviceLost
    }
}
