//! Pinned memory: memory of the host that the GPU reads and writes itself, so that a copy needs no staging and may go on
//! while the host does other things.
//!
//! The blocks are those of the device's allocator, over mapped segments and by the host's addresses. A block that is
//! freed while a copy with it is under way is handed out again when the copy is done.

use crate::device::{Device, SMALL_COPY, Shared};
use crate::error::Error;
use crate::memory::allocator::{Allocator, COMMON, GrowError, Source};
use crate::memory::statistics::MemoryStats;
use crate::profile::activity::Work;
use crate::queue::launch::Range;
use crate::submit::stream::Stream;
use crate::transfer::readback::DOWNLOAD;
use crate::transfer::upload::{UPLOAD, invalid};
use dml_vulkan::{Gpu, MemoryClass, Segment, Ticket, Timeline};
use rustc_hash::FxHashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pinned memory of one device.
pub(crate) struct Pinned(Mutex<Blocks>);

struct Blocks {
    allocator: Allocator<Segment>,
    /// The last copy of a block in use.
    copied: FxHashMap<u64, Ticket>,
    /// Blocks that were freed before their last copy was done.
    freed: Vec<(u64, Ticket)>,
}

struct HostMemory<'a>(&'a Gpu);

impl Source for HostMemory<'_> {
    type Segment = Segment;
    type Error = dml_vulkan::Error;

    fn allocate(&self, bytes: u64) -> Result<Segment, dml_vulkan::Error> {
        self.0.allocate(bytes, MemoryClass::Staging)
    }

    fn address(segment: &Segment) -> u64 {
        segment.host_ptr().map_or(0, |p| p.as_ptr() as u64)
    }
}

impl Blocks {
    /// Makes the blocks available whose copies are done.
    fn recycle(&mut self, done: Ticket) {
        let Self { allocator, freed, .. } = self;
        freed.retain(|&(address, ticket)| ticket > done || !allocator.free(address, false));
    }

    /// Notes that the copy of `ticket` uses the block that `address` lies in.
    fn used(&mut self, address: u64, ticket: Ticket) {
        if let Some((block, _)) = self.allocator.block(address) {
            self.copied.insert(block, ticket);
        }
    }
}

impl Pinned {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Blocks { allocator: Allocator::new(), copied: FxHashMap::default(), freed: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of the cache, or of a new segment; with `modest`, of one that is no larger than needed.
    fn allocate(&self, gpu: &Gpu, timeline: &Timeline, bytes: u64, modest: bool) -> Result<u64, Error> {
        let mut blocks = self.lock();
        blocks.recycle(timeline.completed()?);
        if let Some(address) = blocks.allocator.take(COMMON, bytes) {
            return Ok(address);
        }
        blocks.allocator.grow(&HostMemory(gpu), COMMON, bytes, u64::MAX, modest).map_err(|e| match e {
            GrowError::Limit | GrowError::Source(dml_vulkan::Error::OutOfMemory { .. }) => {
                Error::HostOutOfMemory { requested: bytes }
            }
            GrowError::Source(e) => e.into(),
        })
    }

    fn free(&self, timeline: &Timeline, address: u64) -> bool {
        let mut blocks = self.lock();
        match blocks.copied.remove(&address) {
            // Of a lost device nobody knows what it still does: the block is not used again.
            Some(ticket) if !timeline.completed().is_ok_and(|done| done >= ticket) => {
                blocks.freed.push((address, ticket));
                true
            }
            _ => blocks.allocator.free(address, false),
        }
    }

    /// Releases the segments that hold no block in use. The caller drained the queue.
    fn release(&self, timeline: &Timeline) -> Result<(), Error> {
        let mut blocks = self.lock();
        blocks.recycle(timeline.completed()?);
        drop(blocks.allocator.release());
        Ok(())
    }
}

/// Which way a copy goes.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    ToDevice,
    ToHost,
}

impl Device {
    /// Pinned memory of `bytes` bytes, more than 0: its host address, a multiple of 64. It holds anything.
    ///
    /// # Errors
    /// [`Error::HostOutOfMemory`]; [`Error::DeviceLost`].
    pub fn allocate_pinned(&self, bytes: u64) -> Result<NonNull<u8>, Error> {
        let shared = &**self.shared();
        shared.alive()?;
        let allocate = |modest| shared.wrap(shared.pinned.allocate(shared.gpu(), shared.timeline(), bytes, modest));
        let address = match allocate(false) {
            Err(Error::HostOutOfMemory { .. }) => {
                self.empty_pinned_cache()?;
                allocate(true)?
            }
            other => other?,
        };
        NonNull::new(address as usize as *mut u8).ok_or(Error::HostOutOfMemory { requested: bytes })
    }

    /// Frees memory of [`allocate_pinned`](Self::allocate_pinned), copies with which may still be under way. False when
    /// the address is none of this device's.
    pub fn free_pinned(&self, address: u64) -> bool {
        self.shared().pinned.free(self.shared().timeline(), address)
    }

    /// Whether an address lies in pinned memory of this device.
    pub fn is_pinned(&self, address: u64) -> bool {
        self.shared().pinned.lock().allocator.block(address).is_some()
    }

    /// Statistics of pinned memory. A block that was freed counts until its copies are known to be done.
    pub fn pinned_stats(&self) -> MemoryStats {
        let shared = &**self.shared();
        let mut blocks = shared.pinned.lock();
        if let Ok(done) = shared.timeline().completed() {
            blocks.recycle(done);
        }
        blocks.allocator.stats()
    }

    /// Sets the peaks of pinned memory to the current values, or its totals to 0.
    pub fn reset_pinned_stats(&self, peaks: bool) {
        let mut blocks = self.shared().pinned.lock();
        let stats = blocks.allocator.stats_mut();
        if peaks { stats.reset_peaks() } else { stats.reset_totals() }
    }

    /// Releases cached pinned memory to the system. Waits for all work.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn empty_pinned_cache(&self) -> Result<(), Error> {
        let shared = &**self.shared();
        shared.alive()?;
        shared.drain()?;
        shared.wrap(shared.pinned.release(shared.timeline()))
    }

    /// As [`upload`](Self::upload), from pinned memory and without a copy in between. Unless it is to `wait`, it returns
    /// before the device has read the memory, which the caller must leave alone until then. False, with nothing done, for
    /// memory that is not this device's, and for little of it: that is sooner copied than submitted.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_pinned(&self, dst: u64, data: &[u8], wait: bool) -> Result<bool, Error> {
        if data.len() <= SMALL_COPY {
            return Ok(false);
        }
        self.shared().copy_pinned(dst, data.as_ptr() as u64, data.len() as u64, Way::ToDevice, wait)
    }

    /// As [`download`](Self::download), into pinned memory and without a copy in between. Unless it is to `wait`, it
    /// returns before the memory is written: that is so when an event recorded after it is reached. False, with nothing
    /// done, for memory that is not this device's.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_pinned(&self, src: u64, out: &mut [u8], wait: bool) -> Result<bool, Error> {
        if out.is_empty() || wait && out.len() <= SMALL_COPY {
            return Ok(false);
        }
        let done = self.shared().copy_pinned(src, out.as_mut_ptr() as u64, out.len() as u64, Way::ToHost, wait);
        if wait {
            // A fault is the cause of what went wrong after it.
            self.check_faults()?;
        }
        done
    }
}

impl Shared {
    fn copy_pinned(&self, device: u64, host: u64, bytes: u64, way: Way, wait: bool) -> Result<bool, Error> {
        self.alive()?;
        let mut state = self.lock();
        let mut blocks = self.pinned.lock();
        let Some((pinned, at)) = blocks.allocator.locate_segment(host, bytes) else { return Ok(false) };
        let Some((segment, offset)) = state.allocator.locate_segment(device, bytes) else {
            return Err(invalid(if way == Way::ToDevice { "upload" } else { "download" }, device, bytes));
        };
        let segment = Arc::clone(segment);
        let mut copy = |stream: &mut Stream| {
            let (there, here) = (Range::new(pinned.address() + at, bytes), Range::new(device, bytes));
            if way == Way::ToDevice {
                stream.record_command(Work::Upload, UPLOAD, [&[there], &[here]], |recorder| {
                    recorder.copy(pinned, at, &segment, offset, bytes)
                })
            } else {
                stream.record_command(Work::Download, DOWNLOAD, [&[here], &[there]], |recorder| {
                    recorder.copy(&segment, offset, pinned, at, bytes)
                })
            }
        };
        let (submitted, ticket) = if way == Way::ToHost || wait {
            self.submit_for_host(&mut state, Some(&mut copy))
        } else {
            self.submit_with(&mut state, &mut copy)
        };
        // Also when something failed: what was submitted may use the block.
        blocks.used(host, ticket);
        drop(blocks);
        drop(state);
        submitted?;
        if wait {
            self.wait(ticket)?;
        }
        Ok(true)
    }
}
