//! The command stream of a queue.

use std::sync::Arc;

use ash::vk;
use dml_gpu::traits::*;
use dml_gpu::{Clocks, Span, Ticket, ticks_between};

use super::submissions::{Part, Submissions};
use super::timeline::Timeline;
use crate::command::{Encoder, Recording};
use crate::device::DeviceShared;
use crate::error::Error;
use crate::memory::Segment;
use crate::pipeline::Pipeline;
use crate::query::{Spans, TimestampId, Timestamps, nanoseconds};
use crate::vulkan::Vulkan;

/// Records commands and submits them in batches. Commands start in the order of the calls and may
/// overlap unless a [`barrier`](Recorder::barrier) separates them. Dropping a recorder discards
/// commands that were not submitted and waits for the submitted ones.
pub struct Recorder {
    device: Arc<DeviceShared>,
    timeline: Timeline,
    /// The next submission, without the part that is being recorded, and the earlier ones.
    submissions: Submissions,
    /// The part that is being recorded.
    open: Option<Encoder>,
    /// A barrier was requested while nothing was open.
    barrier: bool,
    host_barrier: bool,
    /// The number of commands of the next submission that the open encoder does not count.
    recorded: usize,
    /// The command buffers of a submission.
    buffers: Vec<vk::CommandBuffer>,
    timestamps: Timestamps,
    spans: Spans,
}

impl Recorder {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        device.check()?;
        Ok(Self {
            timeline: Timeline::new(device)?,
            submissions: Submissions::new(device)?,
            device: Arc::clone(device),
            open: None,
            barrier: false,
            host_barrier: false,
            recorded: 0,
            buffers: Vec::new(),
            timestamps: Timestamps::default(),
            spans: Spans::default(),
        })
    }

    /// As [`Encoder::update`].
    ///
    /// # Errors
    /// As [`Encoder::update`]; [`Error::OutOfMemory`].
    pub fn update(&mut self, dst: &Segment, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.encoder()?.update(dst, offset, data)
    }

    /// The time of a timestamp in nanoseconds since an arbitrary moment, the same for all
    /// timestamps of a device; `None` while its submission is not complete, and forever if that was
    /// discarded.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timestamp of another recorder; [`Error::DeviceLost`].
    pub fn timestamp_ns(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        let period = self.device.adapter.info.capabilities.timestamp_period_ns;
        let bits = self.device.queue.family.timestamp_bits;
        Ok(self.timestamp_ticks(id)?.map(|ticks| nanoseconds(ticks, bits, period)))
    }

    /// Delays the next submission until `ticket` of another recorder of the same device is
    /// complete. A change of queues costs 11 to 15 µs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timeline of another device or a ticket that was not submitted;
    /// [`Error::DeviceLost`].
    pub fn after(&mut self, timeline: &Timeline, ticket: Ticket) -> Result<(), Error> {
        self.device.check()?;
        if !timeline.is_of(&self.device) {
            return Err(invalid("Recorder::after", "the timeline is another device's"));
        }
        timeline.known("Recorder::after", ticket)?;
        if ticket.0 > 0 {
            timeline.ensure_signal(ticket.0)?;
            self.submissions.wait_for(timeline, ticket);
        }
        Ok(())
    }

    /// The last complete ticket. Takes well under a microsecond.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or the driver's error.
    pub fn completed(&mut self) -> Result<Ticket, Error> {
        let done = self.timeline.completed()?;
        self.submissions.completed(&self.timeline, done)?;
        Ok(done)
    }

    /// The encoder of the open part. Opens a part if there is none.
    #[inline]
    fn encoder(&mut self) -> Result<&mut Encoder, Error> {
        match self.open {
            Some(ref mut encoder) => Ok(encoder),
            None => self.open(),
        }
    }

    fn open(&mut self) -> Result<&mut Encoder, Error> {
        self.device.check()?;
        let buffer = self.submissions.next_buffer(&self.timeline)?;
        let usage = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        match Encoder::begin(buffer, usage, self.barrier) {
            Ok(encoder) => {
                self.barrier = false;
                Ok(self.open.insert(encoder))
            }
            Err((buffer, error)) => {
                self.submissions.give_back(buffer);
                Err(error)
            }
        }
    }

    /// Ends the open part, if there is one. If that fails, the commands recorded since the last
    /// submit are discarded.
    fn close(&mut self) -> Result<(), Error> {
        let Some(encoder) = self.open.take() else { return Ok(()) };
        self.recorded += encoder.recorded();
        self.barrier = encoder.owes_barrier();
        let (buffer, ended) = encoder.finish();
        self.submissions.push(Part::Encoded(buffer));
        ended.inspect_err(|_| self.discard())
    }

    fn submit_open(&mut self) -> Result<Ticket, Error> {
        self.encoder()?;
        if let Some(encoder) = &mut self.open {
            if std::mem::take(&mut self.host_barrier) {
                encoder.host_barrier();
            }
            self.timeline.record_marker(encoder);
        }
        self.close()?;
        self.buffers.clear();
        self.buffers.extend(self.submissions.parts());
        match self.timeline.submit(&self.buffers, self.submissions.after()) {
            Ok(ticket) => {
                self.recorded = 0;
                self.submissions.submitted(ticket);
                self.timestamps.submitted();
                Ok(ticket)
            }
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    /// Discards the commands recorded since the last submit.
    fn discard(&mut self) {
        self.recorded = 0;
        self.submissions.discard();
        self.timestamps.discard();
        self.spans.discard(self.next_ticket());
    }

    /// The ticket of the next submission.
    fn next_ticket(&self) -> Ticket {
        Ticket(self.timeline.last_ticket().0 + 1)
    }

    fn check_timestamps(&self) -> Result<(), Error> {
        self.device.check()?;
        if self.device.queue.family.timestamp_bits == 0 {
            return Err(self.device.adapter.unsupported("timestamps on this queue"));
        }
        Ok(())
    }

    /// As [`timestamp_ns`](Self::timestamp_ns), in ticks of the device's clock.
    fn timestamp_ticks(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        self.device.check()?;
        if !self.timestamps.owns(id) {
            return Err(invalid("Recorder::timestamp_ns", "the timestamp is another recorder's"));
        }
        if id.is_discarded() || self.timeline.completed()? < id.ticket() {
            return Ok(None);
        }
        self.timestamps.ticks(id)
    }

    /// The ticks of a timestamp that is submitted alone.
    fn submit_timestamp(&mut self) -> Result<u64, Error> {
        self.submit()?;
        let id = self.timestamp()?;
        let ticket = self.submit()?;
        self.wait(ticket)?;
        self.timestamp_ticks(&id)?.ok_or(Error::DeviceLost)
    }
}

impl dml_gpu::Recorder for Recorder {
    fn host_barrier(&mut self) {
        self.host_barrier = true;
    }

    fn execute(&mut self, recording: &Recording) -> Result<(), Error> {
        self.device.check()?;
        if !recording.is_of(&self.device) {
            return Err(invalid("Recorder::execute", "the recording is another device's"));
        }
        if recording.is_empty() {
            return Ok(());
        }
        self.close()?;
        self.barrier = false; // The recording has one.
        self.submissions.push(Part::Recorded(recording.clone()));
        self.recorded += recording.len();
        Ok(())
    }

    fn timestamp(&mut self) -> Result<TimestampId, Error> {
        self.check_timestamps()?;
        let ticket = self.next_ticket();
        self.encoder()?;
        let Some(encoder) = &mut self.open else { return Err(Error::DeviceLost) };
        let id = self.timestamps.record(&self.device, encoder, ticket)?;
        self.recorded += 1;
        Ok(id)
    }

    fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        let period = f64::from(self.device.adapter.info.capabilities.timestamp_period_ns);
        let bits = self.device.queue.family.timestamp_bits;
        let (from, to) = (self.timestamp_ticks(from)?, self.timestamp_ticks(to)?);
        Ok(from.zip(to).map(|(from, to)| ticks_between(from, to, bits) as f64 * period))
    }

    fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.check_timestamps()?;
        let ticket = self.next_ticket();
        self.encoder()?;
        let Some(encoder) = &mut self.open else { return Err(Error::DeviceLost) };
        let span = self.spans.begin(&self.device, encoder, ticket, id)?;
        let submission = self.submissions.serial();
        let done = command(self);
        if self.submissions.serial() == submission {
            // A recording is a part of its own, and closes the part in which the span began.
            Spans::end(self.encoder()?, span);
        }
        done
    }

    fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        if self.spans.is_empty() {
            return Ok(());
        }
        self.spans.take(self.timeline.completed()?, out)
    }

    fn clocks(&mut self) -> Result<Clocks, Error> {
        self.check_timestamps()?;
        let bits = self.device.queue.family.timestamp_bits;
        let period = f64::from(self.device.adapter.info.capabilities.timestamp_period_ns);
        Clocks::read(bits, period, || self.device.clock_ticks().unwrap_or_else(|| self.submit_timestamp()))
    }

    fn recorded(&self) -> usize {
        self.recorded + self.open.as_ref().map_or(0, Encoder::recorded)
    }

    fn submit(&mut self) -> Result<Ticket, Error> {
        self.device.check()?;
        if self.recorded() == 0 && !self.host_barrier {
            return Ok(self.timeline.last_ticket());
        }
        self.submit_open()
    }

    fn submit_next(&mut self) -> Result<Ticket, Error> {
        self.device.check()?;
        self.submit_open().map_err(|error| match self.submit_open() {
            Ok(_) => error,
            Err(again) => {
                let name = &self.device.adapter.info.name;
                tracing::error!("{name}: submitting fails ({error}; {again}): the device counts as lost");
                self.device.mark_lost();
                Error::DeviceLost
            }
        })
    }

    fn last_ticket(&self) -> Ticket {
        self.timeline.last_ticket()
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), Error> {
        self.timeline.wait(ticket)?;
        self.completed().map(drop)
    }

    fn wait_idle(&mut self) -> Result<(), Error> {
        let last = self.submit()?;
        self.timeline.wait(last)?;
        self.timeline.block(last.0, true)?;
        self.submissions.reclaim(&self.timeline)
    }

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

impl dml_gpu::Commands for Recorder {
    type Api = Vulkan;

    fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.encoder()?.dispatch(pipeline, push, groups)
    }

    fn dispatch_from(
        &mut self,
        pipeline: &Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error> {
        self.encoder()?.dispatch_from(pipeline, push, base, groups)
    }

    fn barrier(&mut self) {
        match &mut self.open {
            Some(encoder) => encoder.barrier(),
            None => self.barrier = true,
        }
    }

    fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.encoder()?.copy(src, src_offset, dst, dst_offset, bytes)
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("recorded", &self.recorded())
            .field("pending", &self.submissions.pending())
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    /// Command buffers and query pools may be destroyed afterwards: nothing is pending, or the
    /// device is lost, after which objects may be destroyed, or it hangs and they are leaked.
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // Also after a simulated loss, when the device in fact still works.
        match self.timeline.block(self.timeline.last_ticket().0, false) {
            Ok(()) => {}
            Err(Error::DeviceLost) => tracing::debug!("a recorder is dropped with work pending on a lost device"),
            Err(error) => {
                let name = &self.device.adapter.info.name;
                tracing::error!("{name}: waiting for the last work fails ({error}): the device counts as lost");
                self.device.mark_hung();
            }
        }
    }
}

fn invalid(call: &'static str, what: &str) -> Error {
    Error::Invalid { call, what: what.to_owned() }
}

#[cfg(test)]
mod tests;
