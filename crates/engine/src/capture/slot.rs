//! The slot for the one capture that a device may have, and which calls belong to the capture.

use crate::backend::Gpu;
use crate::capture::capturing::Capturing;
use crate::error::Error;
use crate::kernels::launch::Launch;
use crate::memory::device_memory::DeviceMemory;

/// The capture of a device, if there is one.
pub(crate) struct CaptureSlot {
    /// The device's index, for messages.
    device: usize,
    current: Option<Box<Capturing>>,
    /// Captures that were begun.
    begun: u64,
}

impl CaptureSlot {
    pub(crate) fn new(device: usize) -> Self {
        Self { device, current: None, begun: 0 }
    }

    /// Whether some thread is capturing.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.current.is_some()
    }

    /// The calling thread's capture.
    pub(crate) fn here(&mut self) -> Option<&mut Capturing> {
        self.current.as_deref_mut().filter(|capture| capture.is_own())
    }

    /// Whether the capture of this number is in progress.
    pub(crate) fn is(&self, number: u64) -> bool {
        self.current.as_ref().is_some_and(|capture| capture.id == number)
    }

    /// Begins a capture of the calling thread that allocates from `pool`. Returns its number.
    ///
    /// # Errors
    /// [`Error::Graph`] when another is in progress.
    pub(crate) fn begin(&mut self, pool: u32) -> Result<u64, Error> {
        if let Some(other) = &self.current {
            let whose = if other.is_own() { "this" } else { "another" };
            let what = format!("a graph is being captured by {whose} thread; a device captures one at a time");
            return Err(self.error(what));
        }
        let number = self.begun;
        self.begun += 1;
        self.current = Some(Box::new(Capturing::new(self.device, number, pool)));
        Ok(number)
    }

    /// Ends the capture.
    pub(crate) fn take(&mut self) -> Option<Box<Capturing>> {
        self.current.take()
    }

    /// Fails if the calling thread is capturing, and with it the capture.
    ///
    /// # Errors
    /// [`Error::Graph`].
    #[cold]
    pub(crate) fn refuse(&mut self, what: &str) -> Result<(), Error> {
        let error = self.error(format!("a graph is being captured, and {what} cannot be part of it"));
        self.here().map_or(Ok(()), |capture| Err(capture.fail(error)))
    }

    /// Captures a launch, if the calling thread is capturing. False if the launch must run: another
    /// thread's capture, whose memory it does not use, or none.
    ///
    /// # Errors
    /// [`Error::Graph`]; the error that the capture failed with; no memory for parameters.
    pub(crate) fn launch(&mut self, gpu: &Gpu, memory: &mut DeviceMemory, launch: &Launch<'_>) -> Result<bool, Error> {
        let Some(capture) = &mut self.current else { return Ok(false) };
        if capture.is_own() {
            return capture.launch(gpu, memory, launch).map(|()| true);
        }
        if launch.reads.iter().chain(launch.writes).any(|&range| capture.owns(memory, range)) {
            let what = format!("{} uses memory of a graph that another thread is capturing", launch.operator);
            return Err(self.error(what));
        }
        Ok(false)
    }

    /// A block was freed.
    #[inline]
    pub(crate) fn freed(&mut self, address: u64) {
        if let Some(capture) = &mut self.current {
            capture.freed(address);
        }
    }

    fn error(&self, what: String) -> Error {
        Error::graph(self.device, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_capture_at_a_time_and_by_one_thread() {
        let mut slot = CaptureSlot::new(3);
        assert_eq!(slot.refuse("nothing"), Ok(()));
        let first = slot.begin(1);
        assert!(first.is_ok() && slot.is_some() && slot.here().is_some_and(|capture| capture.pool == 1));
        assert!(matches!(slot.begin(1), Err(Error::Graph { device: 3, what }) if what.contains("this thread")));
        let mut slot = std::thread::spawn(move || {
            assert!(slot.is_some() && slot.here().is_none(), "another thread's");
            assert_eq!(slot.refuse("waiting"), Ok(()), "this thread captures nothing");
            assert!(matches!(slot.begin(1), Err(Error::Graph { what, .. }) if what.contains("another thread")));
            slot
        })
        .join()
        .expect("it runs");
        let refused = slot.refuse("waiting");
        assert!(matches!(&refused, Err(Error::Graph { what, .. }) if what.contains("waiting")));
        assert!(slot.refuse("reading").is_err());
        let failed = slot.take().and_then(|capture| capture.failed);
        assert_eq!(Err(failed), refused.map_err(Some), "the first reason counts");
        assert_ne!(slot.begin(1), first, "another number");
    }
}
