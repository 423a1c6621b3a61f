//! Copies between the device and pinned memory: one command, with no copy by the host.

use crate::error::Error;
use crate::memory::host_pool::SMALL_COPY;
use crate::memory::pinned::PinnedMemory;
use crate::memory::range::AddressRange;
use crate::profile::activity::{DOWNLOAD, UPLOAD, Work};
use crate::queue::device_queue::DeviceQueue;
use crate::submit::ordered::OrderedRecorder;
use crate::submit::submission::Visibility;
use dml_gpu::traits::*;
use std::ptr::NonNull;
use std::sync::Arc;

/// The pinned memory of one device, and the copies with it.
pub(crate) struct PinnedTransfers {
    queue: Arc<DeviceQueue>,
    memory: Arc<PinnedMemory>,
}

/// The direction of a copy.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Direction {
    ToDevice,
    ToHost,
}

impl PinnedTransfers {
    pub(crate) fn new(queue: Arc<DeviceQueue>) -> Self {
        let memory = Arc::new(PinnedMemory::new(queue.gpu().clone(), queue.submission.timeline().clone()));
        queue.keep(Arc::clone(&memory) as _);
        Self { queue, memory }
    }

    /// The memory, for what needs no queue.
    pub(crate) fn memory(&self) -> &PinnedMemory {
        &self.memory
    }

    /// The host address of `bytes` bytes, more than 0. Cached memory is released if there is no
    /// other.
    ///
    /// # Errors
    /// [`Error::HostOutOfMemory`]; [`Error::DeviceLost`].
    pub(crate) fn allocate(&self, bytes: u64) -> Result<NonNull<u8>, Error> {
        self.queue.submission.alive()?;
        let allocate = |modest| self.queue.submission.check(self.memory.allocate(bytes, modest));
        let address = match allocate(false) {
            Err(Error::HostOutOfMemory { .. }) => {
                self.release()?;
                allocate(true)?
            }
            other => other?,
        };
        NonNull::new(address as usize as *mut u8).ok_or(Error::HostOutOfMemory { requested: bytes })
    }

    /// Releases cached memory to the system. Waits for all work.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn release(&self) -> Result<(), Error> {
        self.queue.submission.alive()?;
        self.queue.drain()?;
        self.queue.submission.check(self.memory.release())
    }

    /// Copies to the device. False, with nothing done, for memory that is not this device's, and
    /// for little of it: that is sooner copied by the host than submitted.
    ///
    /// # Errors
    /// As [`Device::upload_pinned`](crate::Device::upload_pinned).
    pub(crate) fn upload(&self, dst: u64, data: &[u8], wait: bool) -> Result<bool, Error> {
        if data.len() <= SMALL_COPY {
            return Ok(false);
        }
        self.copy(dst, data.as_ptr() as u64, data.len() as u64, Direction::ToDevice, wait)
    }

    /// Copies to the host. False, with nothing done, for memory that is not this device's, and for
    /// little of it if the host waits.
    ///
    /// # Errors
    /// As [`Device::download_pinned`](crate::Device::download_pinned).
    pub(crate) fn download(&self, src: u64, out: &mut [u8], wait: bool) -> Result<bool, Error> {
        if out.is_empty() || wait && out.len() <= SMALL_COPY {
            return Ok(false);
        }
        let done = self.copy(src, out.as_mut_ptr() as u64, out.len() as u64, Direction::ToHost, wait);
        if wait {
            // A fault is the cause of what went wrong after it.
            self.queue.check_faults()?;
        }
        done
    }

    fn copy(&self, device: u64, host: u64, bytes: u64, direction: Direction, wait: bool) -> Result<bool, Error> {
        let queue = &*self.queue;
        queue.submission.alive()?;
        if wait {
            queue.prepare_wait()?;
        } else {
            queue.throttle()?;
        }
        let mut state = queue.lock();
        let mut blocks = self.memory.lock();
        let Some((pinned, at)) = blocks.locate(host, bytes) else { return Ok(false) };
        let Some((segment, offset)) = state.memory.locate_segment(device, bytes) else {
            let call = if direction == Direction::ToDevice { UPLOAD } else { DOWNLOAD };
            return Err(Error::invalid_address(call, queue.device(), device, bytes));
        };
        let segment = Arc::clone(segment);
        let mut copy = |recorder: &mut OrderedRecorder| {
            let (there, here) = (AddressRange::new(pinned.address() + at, bytes), AddressRange::new(device, bytes));
            if direction == Direction::ToDevice {
                recorder.record(Work::Upload, UPLOAD, [&[there], &[here]], |recorder| {
                    recorder.copy(pinned, at, &segment, offset, bytes)
                })
            } else {
                recorder.record(Work::Download, DOWNLOAD, [&[here], &[there]], |recorder| {
                    recorder.copy(&segment, offset, pinned, at, bytes)
                })
            }
        };
        let (submitted, ticket) = if direction == Direction::ToHost || wait {
            queue.flush_to_wait(&mut state, Visibility::Host, Some(&mut copy))
        } else {
            queue.flush_with(&mut state, Visibility::Device, Some(&mut copy))
        };
        // Also when something failed: what was submitted may use the block.
        blocks.used(host, ticket);
        drop(blocks);
        drop(state);
        submitted?;
        if wait {
            queue.wait(ticket)?;
        }
        Ok(true)
    }
}
