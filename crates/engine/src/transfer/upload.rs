//! From the host to the device.

use crate::device::{Device, SMALL_COPY, Shared, State};
use crate::error::Error;
use crate::profile::activity::Work;
use crate::queue::launch::{Launch, Range};
use crate::queue::pending::mapped;
use crate::transfer::copy_kernel;
use std::sync::Arc;

/// The operator of what writes the host's bytes.
pub(crate) const UPLOAD: &str = "upload";

impl Device {
    /// Writes `data` to `dst`, after all work enqueued before. The data is copied before this returns;
    /// it does not wait for the device unless all staging memory is in use.
    ///
    /// Up to 64 KiB travel through a ring of mapped memory, inside the command stream. More goes through staging
    /// memory in chunks, the host's copy of one beside the GPU's of another.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`] unless the bytes lie in one segment of this device;
    /// [`Error::DeviceLost`]; an error of earlier work.
    pub fn upload(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        let shared = &**self.shared();
        shared.alive()?;
        if data.len() > SMALL_COPY {
            return self.upload_large(dst, data);
        }
        let mut state = shared.lock();
        if state.capture.is_some() && shared.capture_upload(&mut state, dst, data)? {
            return Ok(());
        }
        shared.upload_small(&mut state, dst, data)
    }

    fn upload_large(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        let shared = &**self.shared();
        shared.refuse_in_capture("an upload of more than 64 KiB (copy into a tensor that was made before)")?;
        let chunk = shared.staging.bytes() as usize;
        let mut to = dst;
        for part in data.chunks(chunk) {
            let bytes = part.len() as u64;
            let staging = shared.wrap(shared.staging.take(shared.gpu(), shared.timeline()))?;
            let host = mapped(&staging)?;
            // SAFETY: the segment has `chunk` bytes, is mapped, and is used by nobody: it was taken from
            // the pool, which gives only segments that the GPU is done with.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), host.as_ptr(), part.len()) };
            let mut state = shared.lock();
            let Some((segment, offset)) = state.allocator.locate_segment(to, bytes) else {
                return Err(invalid("upload", to, bytes));
            };
            let segment = Arc::clone(segment);
            let (submitted, ticket) = shared.submit_with(&mut state, &mut |stream| {
                stream.record_command(Work::Upload, UPLOAD, [&[], &[Range::new(to, bytes)]], |recorder| {
                    recorder.copy(&staging, 0, &segment, offset, bytes)
                })
            });
            drop(state);
            shared.staging.put(staging, ticket);
            submitted?;
            to += bytes;
        }
        Ok(())
    }
}

impl Shared {
    /// At most [`SMALL_COPY`] bytes.
    pub(crate) fn upload_small(&self, state: &mut State, dst: u64, data: &[u8]) -> Result<(), Error> {
        let range = Range::new(dst, data.len() as u64);
        let Some((segment, offset)) = state.allocator.locate_segment(dst, data.len() as u64) else {
            return Err(invalid("upload", dst, data.len() as u64));
        };
        let segment = Arc::clone(segment);
        let (ring, address) = self.write_ring(state, data)?;
        if dst.is_multiple_of(4) && data.len().is_multiple_of(4) {
            let (params, groups) = copy_kernel::arguments(dst, address, data.len() as u32 / 4);
            let launch = Launch {
                kernel: self.copy_words(),
                params: &params,
                table: &[],
                groups,
                reads: &[],
                writes: &[range],
                operator: UPLOAD,
            };
            return self.launch(state, &launch);
        }
        state.queue.push_upload(ring, segment, offset, range);
        self.enqueued(state)
    }
}

pub(crate) fn invalid(call: &'static str, address: u64, bytes: u64) -> Error {
    Error::InvalidAddress { call, address, bytes }
}
