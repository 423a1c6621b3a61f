//! What threads wait for before they enqueue, and before they wait for the device: with nothing
//! locked.

use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::queue::device_queue::DeviceQueue;

/// How often a thread that is to wait for the device lets others go before it: once for each batch
/// that may have been handed over.
const MAX_TURNS: u32 = 8;

impl DeviceQueue {
    /// Waits while as much is in flight as may be, and then submits the pending batch if it is due.
    /// To be called before anything is enqueued, with nothing locked. A wait that is interrupted
    /// just ends: an operator of several launches is enqueued as a whole, and stays pending
    /// meanwhile; its caller hears of the interruption from the program.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; an error of earlier work.
    #[inline]
    pub(crate) fn throttle(&self) -> Result<(), Error> {
        if !self.submission.is_full() {
            return Ok(());
        }
        match self.throttle_now() {
            Err(Error::Interrupted) => Ok(()),
            other => other,
        }
    }

    /// As [`throttle`](Self::throttle), for a call that enqueues all of its commands or none.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; as there.
    pub(crate) fn throttle_or_interrupt(&self) -> Result<(), Error> {
        if self.submission.is_full() { self.throttle_now() } else { Ok(()) }
    }

    #[cold]
    fn throttle_now(&self) -> Result<(), Error> {
        self.submission.throttle()?;
        let mut state = self.lock();
        if state.pending.count() >= self.submission.batch_limit() {
            return self.submit_due(&mut state);
        }
        Ok(())
    }

    /// To be called before a flush that is waited for, with nothing locked. When it returns, what
    /// was handed over is with the driver, so that the flush gives the driver no more at once than
    /// may be in flight; and the kernels of the pending batch are compiled, so that the flush waits
    /// for no compiler with something locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`]; an error of earlier work.
    #[inline]
    pub(crate) fn prepare_wait(&self) -> Result<(), Error> {
        // Other threads may fill the room again and again; then this one takes its turn.
        for _ in 0..MAX_TURNS {
            if !self.submission.is_full() && !self.submission.handover().has_batches() {
                break;
            }
            self.throttle_now()?;
            self.submission.submit_handed_over_to_wait()?;
        }
        while let Some(kernel) = self.uncompiled() {
            kernel.await_compiled(self.gpu())?;
        }
        Ok(())
    }

    /// A kernel of the pending batch that is not compiled.
    fn uncompiled(&self) -> Option<KernelRef> {
        self.lock().pending.uncompiled().cloned()
    }
}
