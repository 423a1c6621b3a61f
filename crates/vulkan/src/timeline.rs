//! How far a queue has come, and waiting for it.
//!
//! Completion is read from a word in host memory that every submit writes last
//! (`VK_AMD_buffer_marker`), which costs a few nanoseconds; where there is no such extension, from the
//! counter of a timeline semaphore. Creating a semaphore costs up to half a millisecond and signalling
//! it raises an interrupt, so there is one per recorder, and with markers only every 32nd submit
//! signals it: that is what command buffers are recycled by. A wait polls first and blocks later; if
//! the submit that it waits for did not signal, an empty one that does is sent after it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;

use crate::adapter::AdapterKind;
use crate::error::Error;
use crate::gpu::{GpuCore, Queue};
use crate::memory::{MemoryClass, Segment};

/// With markers, one submit in so many signals the semaphore.
const SIGNAL_EVERY: u64 = 32;
/// How long a wait polls before it blocks.
const POLL: Duration = Duration::from_micros(100);
/// How long a blocked wait sleeps before it looks whether the device still lives.
const SLICE: Duration = Duration::from_millis(50);

/// The number of a submission. The first one is 1; 0 is complete from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

/// The progress of a [`Recorder`](crate::Recorder). A clone is another handle of the same timeline,
/// which any thread may use without the recorder's lock.
#[derive(Clone)]
pub struct Timeline {
    core: Arc<Core>,
}

struct Core {
    semaphore: vk::Semaphore,
    marker: Option<MarkerWord>,
    sent: Mutex<Sent>,
    submitted: AtomicU64,
    completed: AtomicU64,
    transfer: bool,
    gpu: Arc<GpuCore>,
}

/// Guards the order of submits of this timeline.
struct Sent {
    submitted: u64,
    signalled: u64,
}

/// The low half of the last complete ticket, written by the GPU.
struct MarkerWord {
    segment: Segment,
    word: NonNull<AtomicU32>,
}

// SAFETY: the word lies in the segment's mapped memory, which lives as long as this does, and is
// only read, atomically.
unsafe impl Send for MarkerWord {}
// SAFETY: as above.
unsafe impl Sync for MarkerWord {}

impl MarkerWord {
    fn new(gpu: &Arc<GpuCore>) -> Result<Option<Self>, Error> {
        if gpu.marker.is_none() {
            return Ok(None);
        }
        let segment = Segment::new(gpu, 64, MemoryClass::Readback)?;
        Ok(segment.host_ptr().map(|pointer| {
            let word = pointer.cast::<AtomicU32>();
            // SAFETY: mapped memory is aligned to at least 64 bytes, and the GPU does not know it yet.
            unsafe { word.as_ref() }.store(0, Ordering::Release);
            Self { segment, word }
        }))
    }

    fn read(&self) -> u32 {
        // SAFETY: the word lives as long as the segment; GPU writes of 4 aligned bytes do not tear.
        unsafe { self.word.as_ref() }.load(Ordering::Acquire)
    }
}

impl Timeline {
    pub(crate) fn new(gpu: &Arc<GpuCore>, transfer: bool) -> Result<Self, Error> {
        let marker = MarkerWord::new(gpu)?;
        let mut ty =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut ty);
        // SAFETY: the device is valid and has timeline semaphores; `info` lives through the call.
        let semaphore =
            unsafe { gpu.device.create_semaphore(&info, None) }.map_err(|e| gpu.error("vkCreateSemaphore", e))?;
        Ok(Self {
            core: Arc::new(Core {
                semaphore,
                marker,
                sent: Mutex::new(Sent { submitted: 0, signalled: 0 }),
                submitted: AtomicU64::new(0),
                completed: AtomicU64::new(0),
                transfer,
                gpu: Arc::clone(gpu),
            }),
        })
    }

    /// The last ticket that was submitted.
    pub fn last_ticket(&self) -> Ticket {
        Ticket(self.core.submitted.load(Ordering::Acquire))
    }

    /// The last ticket that is complete. Cheap: a few nanoseconds, or 0.3 µs without markers.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    pub fn completed(&self) -> Result<Ticket, Error> {
        self.core.gpu.check()?;
        self.poll().map(Ticket)
    }

    /// Returns when `ticket` is complete: polls for 100 µs, then blocks.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], also when nothing completes for `TORCH_DML_TIMEOUT_S` seconds;
    /// [`Error::Invalid`] for a ticket that was not submitted.
    pub fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.core.gpu.check()?;
        self.known("Timeline::wait", ticket)?;
        if self.poll_until(|| Ok(self.completed()? >= ticket))? { Ok(()) } else { self.block(ticket.0, true) }
    }

    /// Returns true when `arrived` does, asked at least once: what work of `ticket` wrote to mapped memory
    /// may be seen long before the ticket is complete. False when the ticket is complete and `arrived` still says no.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for(&self, ticket: Ticket, mut arrived: impl FnMut() -> bool) -> Result<bool, Error> {
        self.core.gpu.check()?;
        self.known("Timeline::wait_for", ticket)?;
        if self.poll_until(|| self.core.gpu.check().map(|()| arrived()))? {
            return Ok(true);
        }
        self.block(ticket.0, true)?;
        Ok(arrived())
    }

    /// Asks `done` until it is true, or for 100 µs.
    fn poll_until(&self, mut done: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        // Polling takes a processor from a driver that computes on it, so that one gets it back.
        let software = self.core.gpu.adapter.info.kind == AdapterKind::Software;
        let mut started = None;
        while !done()? {
            let started = *started.get_or_insert_with(Instant::now);
            if started.elapsed() > POLL {
                return Ok(false);
            }
            if software {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(true)
    }

    pub(crate) fn has_marker(&self) -> bool {
        self.core.marker.is_some()
    }

    /// Where the marker of a submit goes.
    pub(crate) fn marker_buffer(&self) -> Option<vk::Buffer> {
        self.core.marker.as_ref().map(|m| m.segment.buffer)
    }

    pub(crate) fn of(&self, gpu: &Arc<GpuCore>) -> bool {
        Arc::ptr_eq(&self.core.gpu, gpu)
    }

    /// The last complete ticket by the semaphore's counter: by this, and not by the marker, the
    /// driver is known to be done with a command buffer.
    pub(crate) fn retired(&self) -> Result<u64, Error> {
        let gpu = &self.core.gpu;
        // SAFETY: the semaphore is a timeline semaphore of this device.
        let value = unsafe { gpu.device.get_semaphore_counter_value(self.core.semaphore) }
            .map_err(|e| gpu.error("vkGetSemaphoreCounterValue", e))?;
        if value == u64::MAX {
            // Some drivers count to the end when the device is lost.
            return Err(gpu.error("vkGetSemaphoreCounterValue", vk::Result::ERROR_DEVICE_LOST));
        }
        Ok(value)
    }

    /// Submits command buffers as the next ticket. With markers, the last one ends with the marker of
    /// that ticket.
    pub(crate) fn submit(&self, commands: &[vk::CommandBuffer], after: &[(Timeline, u64)]) -> Result<Ticket, Error> {
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

    /// Makes sure that the semaphore will reach `ticket`.
    pub(crate) fn ensure_signal(&self, ticket: u64) -> Result<(), Error> {
        let mut sent = self.sent();
        if sent.signalled < ticket {
            self.send(&[], &[], Some(sent.submitted))?;
            sent.signalled = sent.submitted;
        }
        Ok(())
    }

    /// Blocks until the semaphore reaches `ticket`. With `heed_loss`, a device that is marked lost ends the wait.
    pub(crate) fn block(&self, ticket: u64, heed_loss: bool) -> Result<(), Error> {
        let gpu = &self.core.gpu;
        self.ensure_signal(ticket)?;
        let semaphores = [self.core.semaphore];
        let values = [ticket];
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let slice = u64::try_from(SLICE.min(gpu.patience).as_nanos()).unwrap_or(u64::MAX);
        let mut progress = (self.poll()?, Instant::now());
        loop {
            // SAFETY: the semaphore is a timeline semaphore of this device.
            match unsafe { gpu.device.wait_semaphores(&info, slice) } {
                Ok(()) => {
                    if heed_loss {
                        gpu.check()?;
                    }
                    self.core.completed.fetch_max(ticket, Ordering::AcqRel);
                    return Ok(());
                }
                Err(vk::Result::TIMEOUT) => {}
                Err(error) => return Err(gpu.error("vkWaitSemaphores", error)),
            }
            if heed_loss {
                gpu.check()?;
            }
            let done = self.poll()?;
            if done > progress.0 {
                progress = (done, Instant::now());
            } else if progress.1.elapsed() >= gpu.patience {
                tracing::error!(
                    "{}: no progress for {:?} (ticket {done} is complete, {ticket} is awaited): \
                     the device counts as lost",
                    gpu.adapter.info.name,
                    gpu.patience
                );
                gpu.mark_hung();
                return Err(Error::DeviceLost);
            }
        }
    }

    /// Fails for a ticket that was not submitted.
    pub(crate) fn known(&self, call: &'static str, ticket: Ticket) -> Result<(), Error> {
        let last = self.last_ticket();
        if ticket > last {
            return Err(Error::Invalid {
                call,
                what: format!("ticket {} was not submitted; the last is {}", ticket.0, last.0),
            });
        }
        Ok(())
    }

    fn poll(&self) -> Result<u64, Error> {
        let core = &*self.core;
        let done = match &core.marker {
            Some(marker) => {
                // The word is read after `known` and never falls behind it, so the difference of the
                // low halves is the true one.
                let known = core.completed.load(Ordering::Acquire);
                known + u64::from(marker.read().wrapping_sub(known as u32))
            }
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
        let gpu = &self.core.gpu;
        let signal_values = [signal.unwrap_or(0)];
        let signal_semaphores = [self.core.semaphore];
        let signals = usize::from(signal.is_some());
        let wait_semaphores: Vec<_> = after.iter().map(|(t, _)| t.core.semaphore).collect();
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
        let queue = self.queue().lock();
        // SAFETY: the queue is locked; the command buffers are recorded, and not pending unless they may be
        // several times; values only grow, as the caller holds `sent`.
        unsafe { gpu.device.queue_submit(*queue, std::slice::from_ref(&info), vk::Fence::null()) }
            .map_err(|e| gpu.error("vkQueueSubmit", e))
    }

    fn queue(&self) -> &Queue {
        let gpu = &self.core.gpu;
        match &gpu.transfer {
            Some(queue) if self.core.transfer => queue,
            _ => &gpu.compute,
        }
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.core.sent.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Drop for Core {
    fn drop(&mut self) {
        // The recorder waited for all submits before it let go of its timeline, and recorders whose
        // submits wait for this semaphore hold a handle until those are complete.
        self.gpu.retire(self.semaphore);
    }
}
