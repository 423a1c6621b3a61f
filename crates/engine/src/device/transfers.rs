//! The device's methods for copies between host and device.

use crate::device::Device;
use crate::error::Error;
use crate::memory::range::AddressRange;
use crate::memory::statistics::MemoryStats;
use std::ptr::NonNull;

impl Device {
    /// Writes `data` to `dst`, after all work enqueued before. The data is copied before this
    /// returns; it does not wait for the device unless all staging memory is in use.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`] unless the bytes lie in one segment of this device;
    /// [`Error::DeviceLost`]; an error of earlier work.
    pub fn upload(&self, dst: u64, data: &[u8]) -> Result<(), Error> {
        self.uploads.upload(dst, data)
    }

    /// Memory with the bytes that `make` returned at the first call with this name and number: at
    /// most 4 MiB, which kernels read and nobody writes. It lives as long as the device. A graph
    /// capture finds it ready.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::DeviceLost`]; an error of earlier work.
    pub fn lookup_table(
        &self,
        name: &'static str,
        number: u64,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Result<AddressRange, Error> {
        self.tables.get(name, number, make)
    }

    /// Reads `out.len()` bytes from `src`, after all work enqueued before. Waits; polls before it
    /// blocks.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`] unless the bytes lie in one segment of this device;
    /// [`Error::DeviceLost`]; an error of earlier work, such as [`Error::IndexOutOfRange`].
    pub fn download(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        self.readbacks.download(src, out)
    }

    /// Pinned memory of `bytes` bytes, more than 0: its host address, a multiple of 64. The memory
    /// is not cleared.
    ///
    /// # Errors
    /// [`Error::HostOutOfMemory`]; [`Error::DeviceLost`].
    pub fn allocate_pinned(&self, bytes: u64) -> Result<NonNull<u8>, Error> {
        self.pinned.allocate(bytes)
    }

    /// Frees memory of [`allocate_pinned`](Self::allocate_pinned). Enqueued copies may still use
    /// it. False if the address does not belong to this device.
    pub fn free_pinned(&self, address: u64) -> bool {
        self.pinned.memory().free(address)
    }

    /// Whether an address lies in pinned memory of this device.
    pub fn is_pinned(&self, address: u64) -> bool {
        self.pinned.memory().contains(address)
    }

    /// Statistics of pinned memory. A freed block counts until its copies are known to be done.
    pub fn pinned_stats(&self) -> MemoryStats {
        self.pinned.memory().stats()
    }

    /// Sets the peaks of pinned memory to the current values, or its totals to 0.
    pub fn reset_pinned_stats(&self, peaks: bool) {
        self.pinned.memory().reset_stats(peaks);
    }

    /// Releases cached pinned memory to the system. Waits for all work.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn empty_pinned_cache(&self) -> Result<(), Error> {
        self.pinned.release()
    }

    /// As [`upload`](Self::upload), from pinned memory and without a copy in between. Without
    /// `wait`, it returns before the device has read the memory, which the caller must not modify
    /// until then. Returns false and does nothing for memory that is not pinned on this device, and
    /// for few bytes, because copying them takes less time than a submission.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_pinned(&self, dst: u64, data: &[u8], wait: bool) -> Result<bool, Error> {
        self.pinned.upload(dst, data, wait)
    }

    /// As [`download`](Self::download), into pinned memory and without a copy in between. Without
    /// `wait`, it returns before the memory is written; an event recorded after it marks the end of
    /// the write. Returns false and does nothing for memory that is not pinned on this device.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_pinned(&self, src: u64, out: &mut [u8], wait: bool) -> Result<bool, Error> {
        self.pinned.download(src, out, wait)
    }

    /// For tests of reads of a few bytes.
    #[cfg(test)]
    pub(crate) fn timeline(&self) -> &crate::backend::Timeline {
        self.queue.submission.timeline()
    }

    /// For tests of reads of a few bytes.
    #[cfg(test)]
    pub(crate) fn polled_readback(&self) -> &crate::transfer::polled::PolledReadback {
        self.readbacks.polled()
    }
}
