//! The progress of the queue, and waiting for it: a fence, whose value is the last complete ticket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dml_gpu::traits::*;
use dml_gpu::{Progress, Ticket, Waited, check_submitted, poll_until};
use windows::Win32::Foundation::{CloseHandle, HANDLE, WAIT_OBJECT_0};
use windows::Win32::Graphics::Direct3D12::{D3D12_FENCE_FLAG_NONE, ID3D12CommandQueue, ID3D12Fence};
use windows::Win32::System::Threading::{CreateEventW, WaitForSingleObject};

use crate::device::DeviceShared;
use crate::error::Error;

/// How long a blocked wait sleeps between checks of the device's loss and of the callback.
const SLICE: Duration = Duration::from_millis(50);
/// The longest pause between two checks of a wait without a signal.
const PAUSE: Duration = Duration::from_millis(1);
/// A fence's value once its device is gone.
const GONE: u64 = u64::MAX;

/// See [`dml_gpu::Timeline`].
#[derive(Clone)]
pub struct Timeline {
    core: Arc<Core>,
}

struct Core {
    fence: ID3D12Fence,
    submitted: AtomicU64,
    device: Arc<DeviceShared>,
}

/// A system event, which a fence sets.
struct Event {
    handle: HANDLE,
    set: bool,
}

impl Timeline {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        // SAFETY: the device is valid.
        let fence = unsafe { device.raw.CreateFence(0, D3D12_FENCE_FLAG_NONE) }
            .map_err(|e| device.error("ID3D12Device::CreateFence", &e))?;
        Ok(Self { core: Arc::new(Core { fence, submitted: AtomicU64::new(0), device: Arc::clone(device) }) })
    }

    /// Signals this ticket for the commands that were just executed on the queue, which the caller
    /// has locked.
    pub(crate) fn signal(&self, queue: &ID3D12CommandQueue, ticket: Ticket) -> Result<(), Error> {
        // SAFETY: queue and fence are of this device.
        unsafe { queue.Signal(&self.core.fence, ticket.0) }.map_err(|e| {
            // Without the signal, the end of the commands is never known.
            self.core.device.mark_hung();
            self.core.device.error("ID3D12CommandQueue::Signal", &e)
        })?;
        self.core.submitted.store(ticket.0, Ordering::Release);
        Ok(())
    }

    fn poll(&self) -> Result<u64, Error> {
        // SAFETY: the fence is valid.
        let value = unsafe { self.core.fence.GetCompletedValue() };
        if value == GONE {
            return Err(self.core.device.lost("ID3D12Fence::GetCompletedValue"));
        }
        Ok(value)
    }

    fn poll_until(&self, done: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        poll_until(self.core.device.adapter.info.kind, done)
    }

    /// Blocks until the fence reaches `ticket`, or until `stop` returns true: false then. With
    /// `heed_loss`, the loss of the device ends the wait.
    pub(crate) fn block(&self, ticket: u64, heed_loss: bool, stop: &mut dyn FnMut() -> bool) -> Result<bool, Error> {
        let device = &self.core.device;
        let mut event = Event { handle: create_event(device)?, set: false };
        // SAFETY: fence and event are valid. The fence sets the event once; until then it is not
        // closed.
        unsafe { self.core.fence.SetEventOnCompletion(ticket, event.handle) }
            .map_err(|e| device.error("ID3D12Fence::SetEventOnCompletion", &e))?;
        let mut progress = Progress::new(self.poll()?);
        loop {
            event.wait(SLICE.min(device.timeout));
            if heed_loss {
                device.check()?;
            }
            let done = self.poll()?;
            if done >= ticket {
                event.wait(SLICE);
                return Ok(true);
            }
            self.check_progress(&mut progress, done)?;
            if stop() {
                return Ok(false);
            }
        }
    }

    /// Fails, and marks the device as hung, if a wait has seen no completion for too long.
    fn check_progress(&self, progress: &mut Progress, done: u64) -> Result<(), Error> {
        let device = &self.core.device;
        if !progress.goes_on(done, self.last_ticket(), device.timeout, &device.adapter.info) {
            device.mark_hung();
            return Err(Error::DeviceLost);
        }
        Ok(())
    }

    /// Fails for a ticket that was not submitted.
    fn known(&self, call: &'static str, ticket: Ticket) -> Result<(), Error> {
        check_submitted(call, ticket, self.last_ticket())
    }
}

impl dml_gpu::Timeline for Timeline {
    fn last_ticket(&self) -> Ticket {
        Ticket(self.core.submitted.load(Ordering::Acquire))
    }

    fn completed(&self) -> Result<Ticket, Error> {
        self.core.device.check()?;
        self.poll().map(Ticket)
    }

    fn wait_unless(&self, ticket: Ticket, mut stop: impl FnMut() -> bool) -> Result<bool, Error> {
        self.core.device.check()?;
        self.known("Timeline::wait", ticket)?;
        if self.poll_until(|| Ok(self.completed()? >= ticket))? {
            return Ok(true);
        }
        self.block(ticket.0, true, &mut stop)
    }

    fn wait_for(
        &self,
        ticket: Ticket,
        mut arrived: impl FnMut() -> bool,
        mut stop: impl FnMut() -> bool,
    ) -> Result<Waited, Error> {
        self.core.device.check()?;
        self.known("Timeline::wait_for", ticket)?;
        if self.poll_until(|| self.core.device.check().map(|()| arrived()))? {
            return Ok(Waited::Arrived);
        }
        let complete = self.block(ticket.0, true, &mut stop)?;
        Ok(match (arrived(), complete) {
            (true, _) => Waited::Arrived,
            (false, true) => Waited::Missing,
            (false, false) => Waited::Stopped,
        })
    }

    fn look_until(&self, mut done: impl FnMut(Ticket) -> bool, mut stop: impl FnMut() -> bool) -> Result<bool, Error> {
        if self.poll_until(|| Ok(done(self.completed()?)))? {
            return Ok(true);
        }
        let mut progress = Progress::new(self.poll()?);
        let mut asked = Instant::now();
        loop {
            std::thread::sleep(PAUSE);
            let completed = self.completed()?;
            if done(completed) {
                return Ok(true);
            }
            self.check_progress(&mut progress, completed.0)?;
            if asked.elapsed() >= SLICE {
                if stop() {
                    return Ok(false);
                }
                asked = Instant::now();
            }
        }
    }
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline").field("submitted", &self.core.submitted).finish_non_exhaustive()
    }
}

fn create_event(device: &DeviceShared) -> Result<HANDLE, Error> {
    // SAFETY: no argument must outlive the call.
    unsafe { CreateEventW(None, false, false, None) }.map_err(|e| device.error("CreateEventW", &e))
}

impl Event {
    /// Waits until the event is set, or for this long.
    fn wait(&mut self, most: Duration) {
        if !self.set {
            // SAFETY: the handle is valid.
            self.set = unsafe { WaitForSingleObject(self.handle, most.as_millis() as u32) } == WAIT_OBJECT_0;
        }
    }
}

impl Drop for Event {
    /// An event that a fence may still set is leaked: its handle could otherwise be another
    /// object's by then.
    fn drop(&mut self) {
        if self.set {
            // SAFETY: the handle is valid and has no other owner. A failure cannot be handled.
            let _ = unsafe { CloseHandle(self.handle) };
        }
    }
}
