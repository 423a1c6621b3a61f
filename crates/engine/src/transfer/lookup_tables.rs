//! Lookup tables of kernels: computed by the host, uploaded once, and freed with the device.

use crate::error::Error;
use crate::memory::range::AddressRange;
use crate::queue::device_queue::DeviceQueue;
use crate::transfer::upload::Uploads;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The tables of one device, by name and number.
pub(crate) struct LookupTables {
    queue: Arc<DeviceQueue>,
    uploads: Arc<Uploads>,
    made: Mutex<FxHashMap<(&'static str, u64), AddressRange>>,
}

impl LookupTables {
    pub(crate) fn new(queue: Arc<DeviceQueue>, uploads: Arc<Uploads>) -> Self {
        Self { queue, uploads, made: Mutex::default() }
    }

    /// See [`Device::lookup_table`](crate::Device::lookup_table).
    pub(crate) fn get(
        &self,
        name: &'static str,
        number: u64,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Result<AddressRange, Error> {
        // Locked until the upload is enqueued: a thread that finds a table launches after the
        // upload.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&range) = made.get(&(name, number)) {
            return Ok(range);
        }
        let bytes = make();
        let range = AddressRange::new(self.queue.allocate_common(bytes.len() as u64)?, bytes.len() as u64);
        if let Err(error) = self.uploads.upload_at_once(range.start, &bytes) {
            self.queue.free(range.start);
            return Err(error);
        }
        made.insert((name, number), range);
        Ok(range)
    }
}
