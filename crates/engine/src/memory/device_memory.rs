//! Memory of the device: the caching allocator over segments of the driver, and the handling of
//! shortages.

use crate::backend::{Gpu, Segment};
use crate::error::{Error, Shortage};
use crate::memory::allocator::{Allocator, GrowError, Source};
use dml_gpu::MemoryClass;
use dml_gpu::traits::*;
use std::sync::Arc;

/// The allocator of a device's own memory.
pub(crate) type DeviceMemory = Allocator<DeviceSegments>;

/// Segments of one device.
pub(crate) struct DeviceSegments {
    gpu: Gpu,
    /// The device's index, for messages.
    device: usize,
}

impl DeviceSegments {
    pub(crate) fn new(gpu: Gpu, device: usize) -> Self {
        Self { gpu, device }
    }
}

impl Source for DeviceSegments {
    type Segment = Arc<Segment>;
    type Error = dml_gpu::Error;

    fn allocate(&self, bytes: u64) -> Result<Arc<Segment>, dml_gpu::Error> {
        self.gpu.allocate(bytes, MemoryClass::Device).map(Arc::new)
    }

    fn address(segment: &Arc<Segment>) -> u64 {
        segment.address()
    }
}

impl DeviceMemory {
    /// Free bytes of the device: according to the driver, or if it does not report them, all bytes
    /// that this process does not hold.
    pub(crate) fn free_bytes(&self) -> u64 {
        let gpu = &self.source().gpu;
        let free = gpu.memory_free();
        if gpu.info().capabilities.memory_budget {
            free
        } else {
            free.saturating_sub(self.stats().all.reserved_bytes.current)
        }
    }

    /// A block of a new segment. `None` if there is no memory while the cached segments are kept:
    /// the caller has to release them, and then to [`retry`](Self::retry).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for more bytes than any segment can have; the driver's error.
    pub(crate) fn extend(&mut self, pool: u32, bytes: u64) -> Result<Option<u64>, Error> {
        let max = self.source().gpu.largest_segment();
        if bytes > max {
            return Err(self.out_of_memory(bytes, Shortage::Size(max)));
        }
        let found = self.try_grow(pool, bytes, false)?;
        if found.is_err() {
            self.stats_mut().alloc_retries += 1;
        }
        Ok(found.ok())
    }

    /// A block after cached segments were released: from free blocks that have merged, or from a
    /// new segment, at last from one that is no larger than needed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the driver's error.
    pub(crate) fn retry(&mut self, pool: u32, bytes: u64) -> Result<u64, Error> {
        if let Some(address) = self.take(pool, bytes) {
            return Ok(address);
        }
        let mut met = Shortage::Device;
        for modest in [false, true] {
            match self.try_grow(pool, bytes, modest)? {
                Ok(address) => return Ok(address),
                Err(shortage) => met = shortage,
            }
        }
        Err(self.out_of_memory(bytes, met))
    }

    /// A block of a new segment, or the limit that was met.
    fn try_grow(&mut self, pool: u32, bytes: u64, modest: bool) -> Result<Result<u64, Shortage>, Error> {
        match self.grow(pool, bytes, modest) {
            Ok(address) => Ok(Ok(address)),
            Err(GrowError::Limit | GrowError::Source(dml_gpu::Error::OutOfMemory { .. })) => {
                let limit = self.limit();
                Ok(Err(if limit == u64::MAX { Shortage::Device } else { Shortage::Process(limit) }))
            }
            Err(GrowError::Source(dml_gpu::Error::TooManyAllocations { limit })) => Ok(Err(Shortage::Count(limit))),
            Err(GrowError::Source(e)) => Err(e.into()),
        }
    }

    fn out_of_memory(&mut self, requested: u64, shortage: Shortage) -> Error {
        self.stats_mut().ooms += 1;
        let stats = self.stats();
        let free = self.free_bytes();
        let DeviceSegments { gpu, device } = self.source();
        Error::OutOfMemory {
            requested,
            allocated: stats.all.allocated_bytes.current,
            reserved: stats.all.reserved_bytes.current,
            free,
            total: gpu.info().memory_total,
            device: *device,
            adapter: gpu.info().name.clone(),
            shortage,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::memory::allocator::COMMON;

    /// The present adapter may allow more than it has memory for. Runs in a process of its own,
    /// which is this test binary, since a process lists its adapters once.
    #[test]
    fn limits_of_the_driver_are_named() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["memory::device_memory::tests::names_the_limits", "--exact", "--ignored"])
            .env("TORCH_DML_PROFILE", "minimum")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "called under the profile minimum"]
    fn names_the_limits() {
        let gpu = crate::backend::adapters().unwrap()[0].open().unwrap();
        let mut memory = DeviceMemory::new(DeviceSegments::new(gpu.clone(), 0));
        let error = memory.extend(COMMON, (1 << 30) + 1).unwrap_err().to_string();
        assert!(error.ends_with("This driver allocates at most 1.00 GiB at once."), "{error}");

        // All but one, which is the memory's first segment.
        let others: Vec<_> = (1..4096).map(|_| gpu.allocate(64, MemoryClass::Device).unwrap()).collect();
        assert!(memory.extend(COMMON, 2 << 20).unwrap().is_some());
        assert_eq!(memory.extend(COMMON, 20 << 20).unwrap(), None, "what is cached is to be released first");
        let error = memory.retry(COMMON, 20 << 20).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == 20 << 20), "{error}");
        let error = error.to_string();
        assert!(error.ends_with("This driver allows 4096 allocations at a time, and they all exist."), "{error}");
        let stats = memory.stats();
        assert_eq!((stats.ooms, stats.alloc_retries), (2, 1));
        drop(others);
        assert!(memory.retry(COMMON, 20 << 20).is_ok());
    }
}
