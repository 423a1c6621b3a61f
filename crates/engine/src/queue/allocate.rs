//! Memory in the order of the commands: blocks are handed out and freed between them.

use crate::error::Error;
use crate::memory::allocator::COMMON;
use crate::profile::measure::{self, Stage};
use crate::queue::device_queue::{DeviceQueue, State};

impl DeviceQueue {
    /// The address of a block of `bytes` bytes, not 0, from the pool of the calling thread's
    /// capture or from the common one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] after cached memory was released in vain; [`Error::DeviceLost`].
    #[inline]
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.submission.alive()?;
        let mut state = self.lock();
        if state.capture.is_some()
            && let Some(captured) = self.allocate_captured(&mut state, bytes)
        {
            return captured;
        }
        match state.memory.take(COMMON, bytes) {
            Some(address) => Ok(address),
            None => {
                drop(state);
                self.allocate_new(bytes)
            }
        }
    }

    /// As [`allocate`](Self::allocate), always from the common pool: for memory that outlives a
    /// capture.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_common(&self, bytes: u64) -> Result<u64, Error> {
        self.submission.alive()?;
        let taken = self.lock().memory.take(COMMON, bytes);
        taken.map_or_else(|| self.allocate_new(bytes), Ok)
    }

    /// Allocates for the capture of the calling thread; `None` if it captures nothing.
    #[cold]
    pub(crate) fn allocate_captured(&self, state: &mut State, bytes: u64) -> Option<Result<u64, Error>> {
        let pool = state.capture.here()?.pool;
        let address = match state.memory.take(pool, bytes) {
            Some(address) => Ok(address),
            None => self.allocate_slowly(state, pool, bytes),
        };
        if let (Ok(address), Some(capture)) = (&address, state.capture.here()) {
            capture.allocated.insert(*address);
        }
        Some(address)
    }

    /// A block of the common pool in a new segment, if need be after the cached segments were
    /// released. The wait for it is with the queue unlocked.
    #[cold]
    fn allocate_new(&self, bytes: u64) -> Result<u64, Error> {
        let extended = self.lock().memory.extend(COMMON, bytes);
        if let Some(address) = self.submission.check(extended)? {
            return Ok(address);
        }
        self.allocate_released(&mut *self.synchronize_and_lock()?, COMMON, bytes)
    }

    /// A block of a new segment, if need be after the cached segments were released.
    #[cold]
    fn allocate_slowly(&self, state: &mut State, pool: u32, bytes: u64) -> Result<u64, Error> {
        if let Some(address) = self.submission.check(state.memory.extend(pool, bytes))? {
            return Ok(address);
        }
        self.allocate_released(state, pool, bytes)
    }

    /// A block after the cached segments were released.
    fn allocate_released(&self, state: &mut State, pool: u32, bytes: u64) -> Result<u64, Error> {
        let released = self.release_locked(state);
        self.defer(released)?;
        self.submission.check(state.memory.retry(pool, bytes))
    }

    /// Frees a block. Work enqueued before may still use it; work enqueued later may get it again.
    /// An address that is not in use is ignored.
    pub(crate) fn free(&self, address: u64) {
        let _stage = measure::enter(Stage::Allocate);
        let mut state = self.lock();
        let State { pending, memory, capture } = &mut *state;
        let has_pending = pending.count() > 0;
        capture.freed(address);
        if memory.free(address, has_pending || capture.is_some()) {
            // A free tells of contents that need not be written. Only pending commands can have
            // written any.
            if has_pending {
                pending.push_free(address);
            }
        } else {
            tracing::error!("free of {address:#x}, which is not in use");
        }
    }

    /// Releases cached memory to the driver. Waits for all work.
    ///
    /// # Errors
    /// [`Error::Graph`] in a capture; [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn release(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.refuse_in_capture("waiting for the device (to give back cached memory)")?;
        self.release_locked(&mut *self.synchronize_and_lock()?)
    }

    fn release_locked(&self, state: &mut State) -> Result<(), Error> {
        let drained = self.drain_locked(state);
        if !self.submission.is_lost() {
            drop(state.memory.release());
            self.host_pools.release(self.submission.timeline());
        }
        drained
    }
}
