//! Faults that kernels report: bad indices and other values out of range ([`crate::fault`]).

use crate::error::Error;
use crate::queue::device_queue::DeviceQueue;

impl DeviceQueue {
    /// The address to which a kernel reports that the calling thread launches, or captures.
    #[inline]
    pub(crate) fn fault_address(&self) -> u64 {
        if self.may_capture()
            && let Some(capture) = self.lock().capture.here()
        {
            capture.reports = true;
            return self.fault.of_graphs().start;
        }
        self.fault.give()
    }

    /// Returns the fault that a kernel of the calling thread reported, or of one that has ended,
    /// once. Waits for all work if there is one.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::DeviceLost`].
    #[inline]
    pub(crate) fn check_faults(&self) -> Result<(), Error> {
        if self.fault.raised_for_wait() { self.raise_fault() } else { Ok(()) }
    }

    /// Waits for all work, and returns the fault that a kernel reported.
    ///
    /// # Errors
    /// As [`check_faults`](Self::check_faults).
    #[cold]
    pub(crate) fn raise_fault(&self) -> Result<(), Error> {
        // Locked until the report is taken: nobody else takes it too, and no new work writes
        // another meanwhile.
        let mut state = self.synchronize_and_lock()?;
        self.drain_locked(&mut state)?;
        self.fault.take()
    }
}
