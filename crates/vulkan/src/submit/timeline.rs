//! The progress of a queue, and waiting for it.
//!
//! Completion is read from a word in host memory that every submit writes last
//! (`VK_AMD_buffer_marker`), which costs a few nanoseconds; without the extension, from the counter
//! of a timeline semaphore. Creating a semaphore costs up to half a millisecond and signalling it
//! raises an interrupt, so there is one per recorder, and with markers only every 32nd submit
//! signals it, to reclaim command buffers. A wait polls first and blocks later; if the awaited
//! submit does not signal, an empty one that signals is sent after it. Waits can be interrupted:
//! their callback is called every 50 ms, without any lock held.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use dml_gpu::traits::*;
use dml_gpu::{Progress, Ticket, Waited, check_submitted, poll_until};

use super::marker::MarkerWord;
use super::semaphore::TimelineSemaphore;
use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;

/// With markers, one of this many submits signals the semaphore.
const SIGNAL_EVERY: u64 = 32;
/// How long a blocked wait sleeps between checks of the device's loss and of the callback.
const SLICE: Duration = Duration::from_millis(50);
/// The first and the longest pause between two checks of a wait without a signal.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// The progress of a [`Recorder`](crate::Recorder). A clone is another handle of the same timeline,
/// which any thread may use without the recorder's lock.
#[derive(Clone)]
pub struct Timeline {
    core: Arc<Core>,
}

struct Core {
    semaphore: TimelineSemaphore,
    marker: Option<MarkerWord>,
    sent: Mutex<Sent>,
    submitted: AtomicU64,
    completed: AtomicU64,
    device: Arc<DeviceShared>,
}

/// Guards the order of submits of this timeline.
struct Sent {
    submitted: u64,
    signalled: u64,
}

impl Timeline {
    pub(super) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        Ok(Self {
            core: Arc::new(Core {
                marker: MarkerWord::new(device)?,
                semaphore: TimelineSemaphore::new(device)?,
                sent: Mutex::new(Sent { submitted: 0, signalled: 0 }),
                submitted: AtomicU64::new(0),
                completed: AtomicU64::new(0),
                device: Arc::clone(device),
            }),
        })
    }

    fn poll_until(&self, done: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        poll_until(self.core.device.adapter.info.kind, done)
    }

    pub(super) fn has_marker(&self) -> bool {
        self.core.marker.is_some()
    }

    /// Ends the next submission with its marker, if there are markers.
    pub(super) fn record_marker(&self, encoder: &mut Encoder) {
        if let Some(marker) = &self.core.marker {
            marker.record(encoder, Ticket(self.last_ticket().0 + 1));
        }
    }

    pub(super) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.core.device, device)
    }

    /// The last complete ticket by the semaphore's counter: only this, and not the marker, tells
    /// that the driver is done with a command buffer.
    pub(super) fn retired(&self) -> Result<u64, Error> {
        self.core.semaphore.value()
    }

    /// Submits command buffers as the next ticket. With markers, the last one ends with the marker
    /// of that ticket.
    pub(super) fn submit(&self, commands: &[vk::CommandBuffer], after: &[(Timeline, u64)]) -> Result<Ticket, Error> {
        let mut sent = self.sent();
        let ticket = sent.submitted + 1;
        let signal = self.core.marker.is_none() || ticket - sent.signalled >= SIGNAL_EVERY;
        self.send(commands, after, signal.then_some(ticket))?;
        sent.submitted = ticket;
        if signal {
            sent.signalled = ticket;
        }
        self.core.submitted.store(ticket, Ordering::Release);
        Ok(Ticket(ticket))
    }

    /// Ensures that the semaphore will reach `ticket`.
    pub(super) fn ensure_signal(&self, ticket: u64) -> Result<(), Error> {
        let mut sent = self.sent();
        if sent.signalled < ticket {
            self.send(&[], &[], Some(sent.submitted))?;
            sent.signalled = sent.submitted;
        }
        Ok(())
    }

    /// Blocks until the semaphore reaches `ticket`. With `heed_loss`, the loss of the device ends
    /// the wait.
    pub(super) fn block(&self, ticket: u64, heed_loss: bool) -> Result<(), Error> {
        self.block_unless(ticket, heed_loss, &mut || false).map(drop)
    }

    /// As [`block`](Self::block), until `stop` returns true: false then.
    fn block_unless(&self, ticket: u64, heed_loss: bool, stop: &mut dyn FnMut() -> bool) -> Result<bool, Error> {
        let device = &self.core.device;
        self.ensure_signal(ticket)?;
        let slice = SLICE.min(device.timeout);
        let mut progress = Progress::new(self.poll()?);
        loop {
            let reached = self.core.semaphore.wait(ticket, slice)?;
            if heed_loss {
                device.check()?;
            }
            if reached {
                self.core.completed.fetch_max(ticket, Ordering::AcqRel);
                return Ok(true);
            }
            self.check_progress(&mut progress, self.poll()?)?;
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
    pub(super) fn known(&self, call: &'static str, ticket: Ticket) -> Result<(), Error> {
        check_submitted(call, ticket, self.last_ticket())
    }

    fn poll(&self) -> Result<u64, Error> {
        let core = &*self.core;
        let done = match &core.marker {
            Some(marker) => marker.read(core.completed.load(Ordering::Acquire)),
            None => self.retired()?,
        };
        core.completed.fetch_max(done, Ordering::AcqRel);
        Ok(done)
    }

    fn send(
        &self,
        commands: &[vk::CommandBuffer],
        after: &[(Timeline, u64)],
        signal: Option<u64>,
    ) -> Result<(), Error> {
        let device = &self.core.device;
        let signal_values = [signal.unwrap_or(0)];
        let signal_semaphores = [self.core.semaphore.raw()];
        let signals = usize::from(signal.is_some());
        let wait_semaphores: Vec<_> = after.iter().map(|(t, _)| t.core.semaphore.raw()).collect();
        let wait_values: Vec<_> = after.iter().map(|&(_, value)| value).collect();
        let wait_stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; after.len()];
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values[..signals]);
        let mut info = vk::SubmitInfo::default().command_buffers(commands);
        if signal.is_some() || !after.is_empty() {
            info = info
                .wait_semaphores(&wait_semaphores)
                .wait_dst_stage_mask(&wait_stages)
                .signal_semaphores(&signal_semaphores[..signals])
                .push_next(&mut values);
        }
        let queue = device.queue.lock();
        // SAFETY: the queue belongs to this device and is locked. The command buffers belong to it,
        // too, are recorded completely, and are not pending unless they may be pending several
        // times; the caller, a recorder, keeps them and the timelines of `after` until the ticket
        // is complete. `info` and everything it points to live through the call. The signalled
        // value is above all earlier ones, as the caller holds `sent`; the awaited values were
        // submitted.
        unsafe { device.raw.queue_submit(*queue, std::slice::from_ref(&info), vk::Fence::null()) }
            .map_err(|e| device.error("vkQueueSubmit", e))
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.core.sent.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.block_unless(ticket.0, true, &mut stop)
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
        let complete = self.block_unless(ticket.0, true, &mut stop)?;
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
        let (mut pause, mut asked) = (PAUSES[0], Instant::now());
        loop {
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSES[1]);
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
        f.debug_struct("Timeline")
            .field("submitted", &self.core.submitted)
            .field("completed", &self.core.completed)
            .field("marker", &self.has_marker())
            .finish_non_exhaustive()
    }
}
