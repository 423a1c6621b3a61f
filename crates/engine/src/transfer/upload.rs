//! From the host to the device.

use crate::error::Error;
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::Launch;
use crate::memory::host_pool::SMALL_COPY;
use crate::memory::mapped::mapped;
use crate::memory::range::AddressRange;
use crate::profile::activity::{UPLOAD, Work};
use crate::queue::device_queue::{DeviceQueue, State};
use crate::submit::submission::Visibility;
use crate::transfer::copy_kernel;
use dml_gpu::traits::*;
use std::sync::Arc;

/// Uploads of one device.
///
/// Up to 64 KiB travel through a ring of mapped memory, inside the command stream. More goes
/// through staging memory in chunks, the host copies one chunk while the GPU copies another.
pub(crate) struct Uploads {
    queue: Arc<DeviceQueue>,
    copy_words: KernelRef,
}

impl Uploads {
    /// Uploads by a kernel that [copies words](copy_kernel::copy_words).
    pub(crate) fn new(queue: Arc<DeviceQueue>, copy_words: KernelRef) -> Self {
        Self { queue, copy_words }
    }

    /// Writes `data` to `dst`, after all work enqueued before. The data is copied before this
    /// returns.
    ///
    /// # Errors
    /// As [`Device::upload`](crate::Device::upload).
    pub(crate) fn upload(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        self.queue.submission.alive()?;
        self.queue.throttle()?;
        if data.len() > SMALL_COPY {
            return self.upload_large(dst, data);
        }
        let mut state = self.queue.lock();
        if state.capture.is_some() && self.capture_upload(&mut state, dst, data)? {
            return Ok(());
        }
        self.upload_small(&mut state, dst, data)
    }

    /// At most [`SMALL_COPY`] bytes, also during a capture.
    pub(crate) fn upload_small(&self, state: &mut State, dst: u64, data: &[u8]) -> Result<(), Error> {
        let range = AddressRange::new(dst, data.len() as u64);
        let Some((segment, offset)) = state.memory.locate_segment(dst, data.len() as u64) else {
            return Err(Error::invalid_address(UPLOAD, self.queue.device(), dst, data.len() as u64));
        };
        let segment = Arc::clone(segment);
        let from = self.queue.stage(state, data)?;
        if self.by_words(range) {
            return self.with_copy(range, from.address, |launch| self.queue.launch_locked(state, launch));
        }
        self.queue.copy_locked(state, from, (segment, offset), range)
    }

    /// At most [`MAX_REGION_BYTES`](crate::memory::upload_ring::MAX_REGION_BYTES) bytes, now also
    /// also if the calling thread captures: the upload is no part of its graph.
    pub(crate) fn upload_at_once(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        let range = AddressRange::new(dst, data.len() as u64);
        self.queue.submission.alive()?;
        self.queue.throttle()?;
        let mut state = self.queue.lock();
        let Some((segment, offset)) = state.memory.locate_segment(dst, range.end - range.start) else {
            return Err(Error::invalid_address(UPLOAD, self.queue.device(), dst, range.end - range.start));
        };
        let segment = Arc::clone(segment);
        let from = self.queue.stage(&mut state, data)?;
        self.queue.copy_locked(&mut state, from, (segment, offset), range)
    }

    /// Captures an upload of at most [`SMALL_COPY`] bytes with its bytes. False if the calling
    /// thread captures nothing.
    #[cold]
    fn capture_upload(&self, state: &mut State, dst: u64, data: &[u8]) -> Result<bool, Error> {
        let State { capture, memory, .. } = state;
        let Some(capture) = capture.here() else { return Ok(false) };
        let (gpu, range) = (self.queue.gpu(), AddressRange::new(dst, data.len() as u64));
        if memory.locate(dst, data.len() as u64).is_none() {
            return Err(Error::invalid_address(UPLOAD, self.queue.device(), dst, data.len() as u64));
        }
        let from = self.queue.submission.check(capture.constant(gpu, data))?;
        if self.by_words(range) {
            let captured = self.with_copy(range, from.address, |launch| capture.launch(gpu, memory, launch));
            self.queue.submission.check(captured)?;
        } else {
            capture.copy(memory, from, range);
        }
        Ok(true)
    }

    /// Runs `run` with the launch of the copy kernel that writes `to`, whole words, from an
    /// address.
    fn with_copy<R>(
        &self,
        to: AddressRange,
        from: u64,
        run: impl FnOnce(&Launch<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        ArgumentBlock::with_spare(|block| {
            let groups = copy_kernel::pass(to, from, block);
            run(&block.launch(&self.copy_words, groups, UPLOAD)?)
        })
    }

    /// Whether the copy kernel writes these bytes; otherwise the driver copies them.
    fn by_words(&self, range: AddressRange) -> bool {
        range.start.is_multiple_of(4) && (range.end - range.start).is_multiple_of(4) && !self.copy_words.refused()
    }

    fn upload_large(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        let queue = &*self.queue;
        queue.refuse_in_capture("an upload of more than 64 KiB (copy into a tensor that was made before)")?;
        let pool = &queue.host_pools.staging;
        let mut to = dst;
        for part in data.chunks(pool.bytes() as usize) {
            let bytes = part.len() as u64;
            let staging = pool.take_in_any_case(queue.gpu(), queue.submission.timeline());
            let mut staging = queue.submission.check(staging)?;
            let host = mapped(&staging)?;
            // SAFETY: the segment is mapped and has the bytes of a chunk, of which `part` is one.
            // Nobody else has it, and the GPU is done with it, as the pool gives no others. `part`
            // is other memory: nobody has a slice of it.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), host.as_ptr(), part.len()) };
            let mut state = queue.lock();
            let Some((segment, offset)) = state.memory.locate_segment(to, bytes) else {
                return Err(Error::invalid_address(UPLOAD, queue.device(), to, bytes));
            };
            let segment = Arc::clone(segment);
            let (submitted, ticket) = queue.flush_with(
                &mut state,
                Visibility::Device,
                Some(&mut |recorder| {
                    recorder.record(Work::Upload, UPLOAD, [&[], &[AddressRange::new(to, bytes)]], |recorder| {
                        recorder.copy(&staging, 0, &segment, offset, bytes)
                    })
                }),
            );
            drop(state);
            staging.used(ticket);
            submitted?;
            to += bytes;
        }
        Ok(())
    }
}
