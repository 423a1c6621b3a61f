//! The command stream of the queue.

use std::collections::VecDeque;
use std::sync::Arc;

use dml_gpu::traits::*;
use dml_gpu::{Clocks, Span, Ticket, ticks_between};

use crate::command::{CommandList, Encoder, Recording};
use crate::device::DeviceShared;
use crate::direct3d::D3d12;
use crate::error::{Error, invalid};
use crate::pipeline::Pipeline;
use crate::queries::{Queries, TimestampId};
use crate::segment::Segment;
use crate::timeline::Timeline;

/// Valid bits of a timestamp.
const TIMESTAMP_BITS: u32 = 64;
/// The largest number of pending submissions; the next one waits for the oldest.
const MAX_PENDING: usize = 256;

/// A part of a submission. Parts run in their order.
enum Part {
    /// Commands that run once.
    Encoded(CommandList),
    /// Commands that were recorded earlier, and may be pending several times.
    Recorded(Recording),
}

/// A timed command: the caller's name for it, and the timestamps before and after it.
struct Timed {
    id: u64,
    begin: TimestampId,
    end: TimestampId,
}

/// See [`dml_gpu::Recorder`].
pub struct Recorder {
    device: Arc<DeviceShared>,
    timeline: Timeline,
    encoder: Encoder,
    /// The next submission, without the encoder's commands.
    parts: Vec<Part>,
    /// The number of its commands.
    recorded: usize,
    /// A submission is required, even an empty one.
    owed: bool,
    /// The submitted ones, oldest first.
    pending: VecDeque<(Ticket, Vec<Part>)>,
    queries: Option<Queries>,
    spans: VecDeque<Timed>,
}

impl Recorder {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        device.check()?;
        Ok(Self {
            timeline: Timeline::new(device)?,
            encoder: Encoder::new(device),
            device: Arc::clone(device),
            parts: Vec::new(),
            recorded: 0,
            owed: false,
            pending: VecDeque::new(),
            queries: None,
            spans: VecDeque::new(),
        })
    }

    /// The ticket of the next submission.
    fn next_ticket(&self) -> Ticket {
        Ticket(self.timeline.last_ticket().0 + 1)
    }

    /// Moves the encoder's commands into the next submission.
    fn close(&mut self) -> Result<(), Error> {
        let recorded = self.encoder.recorded();
        match self.encoder.take() {
            Ok(lists) => {
                self.recorded += recorded;
                self.parts.extend(lists.into_iter().map(Part::Encoded));
                Ok(())
            }
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    fn submit_open(&mut self) -> Result<Ticket, Error> {
        self.close()?;
        let ticket = self.next_ticket();
        if let Err(error) = self.execute_parts(ticket) {
            self.discard();
            return Err(error);
        }
        self.recorded = 0;
        self.owed = false;
        self.pending.push_back((ticket, std::mem::take(&mut self.parts)));
        if let Some(queries) = &mut self.queries {
            queries.submitted();
        }
        self.reclaim()?;
        Ok(ticket)
    }

    /// Gives the parts to the queue, each list by a call of its own, and then the signal.
    fn execute_parts(&self, ticket: Ticket) -> Result<(), Error> {
        let mut lists = Vec::new();
        for part in &self.parts {
            match part {
                Part::Encoded(list) => lists.push(Some(list.executable()?)),
                Part::Recorded(recording) => {
                    for list in recording.lists() {
                        lists.push(Some(list.executable()?));
                    }
                }
            }
        }
        let queue = self.device.queue();
        for list in lists.chunks(1) {
            // SAFETY: queue and list are of this device; the list is closed, and `pending` keeps it
            // until it has run.
            unsafe { queue.ExecuteCommandLists(list) };
        }
        self.timeline.signal(&queue, ticket)
    }

    /// Discards the commands recorded since the last submit.
    fn discard(&mut self) {
        let next = self.next_ticket();
        self.recorded = 0;
        self.owed = false;
        let parts = std::mem::take(&mut self.parts);
        if self.device.is_hung() {
            // The queue may already have them.
            std::mem::forget(parts);
        }
        if let Some(queries) = &mut self.queries {
            queries.discard();
        }
        self.spans.retain(|timed| timed.begin.ticket() < next);
    }

    /// Reclaims complete submissions.
    fn reclaim(&mut self) -> Result<(), Error> {
        if self.pending.len() >= MAX_PENDING {
            let oldest = self.pending.front().map_or(0, |(ticket, _)| ticket.0);
            self.timeline.block(oldest, true, &mut || false)?;
        }
        let done = self.timeline.completed()?;
        while self.pending.front().is_some_and(|&(ticket, _)| ticket <= done) {
            for part in self.pending.pop_front().into_iter().flat_map(|(_, parts)| parts) {
                if let Part::Encoded(list) = part {
                    self.encoder.give(list);
                }
            }
        }
        Ok(())
    }

    fn check_timestamps(&self) -> Result<(), Error> {
        self.device.check()?;
        let info = &self.device.adapter.info;
        if info.capabilities.timestamp_period_ns == 0.0 {
            return Err(Error::Unsupported { adapter: info.name.clone(), what: "timestamps".to_owned() });
        }
        Ok(())
    }

    /// Records a timestamp, in the list that is being recorded, of any kind.
    fn stamp(&mut self) -> Result<TimestampId, Error> {
        let ticket = self.next_ticket();
        if self.queries.is_none() {
            self.queries = Some(Queries::new(&self.device)?);
        }
        let Some(queries) = &mut self.queries else { return Err(Error::DeviceLost) };
        queries.record(self.encoder.any_list()?, ticket)
    }

    /// The ticks of a timestamp; `None` while its submission is not complete, and forever if that
    /// was discarded.
    fn ticks(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        self.device.check()?;
        let Some(queries) = self.queries.as_ref().filter(|queries| queries.owns(id)) else {
            return Err(invalid("Recorder::elapsed_ns", "the timestamp is another recorder's"));
        };
        if id.is_discarded() || self.timeline.completed()? < id.ticket() {
            return Ok(None);
        }
        queries.ticks(&self.device, id).map(Some)
    }
}

impl dml_gpu::Commands for Recorder {
    type Api = D3d12;

    fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.encoder.dispatch(pipeline, push, groups)
    }

    fn dispatch_from(
        &mut self,
        pipeline: &Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error> {
        self.encoder.dispatch_from(pipeline, push, base, groups)
    }

    fn barrier(&mut self) {
        self.encoder.barrier();
    }

    fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.encoder.copy(src, src_offset, dst, dst_offset, bytes)
    }
}

impl dml_gpu::Recorder for Recorder {
    fn host_barrier(&mut self) {
        self.owed = true;
    }

    fn execute(&mut self, recording: &Recording) -> Result<(), Error> {
        self.device.check()?;
        if !recording.is_of(&self.device) {
            return Err(invalid("Recorder::execute", "the recording is another device's"));
        }
        if recording.commands() == 0 {
            return Ok(());
        }
        self.close()?;
        self.parts.push(Part::Recorded(recording.clone()));
        self.recorded += recording.commands();
        Ok(())
    }

    fn timestamp(&mut self) -> Result<TimestampId, Error> {
        self.check_timestamps()?;
        let id = self.stamp()?;
        self.recorded += 1;
        Ok(id)
    }

    fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        let period = f64::from(self.device.adapter.info.capabilities.timestamp_period_ns);
        let (from, to) = (self.ticks(from)?, self.ticks(to)?);
        Ok(from.zip(to).map(|(from, to)| ticks_between(from, to, TIMESTAMP_BITS) as f64 * period))
    }

    fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.check_timestamps()?;
        let begin = self.stamp()?;
        let done = command(self);
        if !begin.is_discarded() && begin.ticket() == self.next_ticket() {
            let end = self.stamp()?;
            self.spans.push_back(Timed { id, begin, end });
        }
        done
    }

    fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        while let Some(timed) = self.spans.front() {
            let (Some(begin), Some(end)) = (self.ticks(&timed.begin)?, self.ticks(&timed.end)?) else { break };
            out.push((timed.id, Span { begin, end }));
            self.spans.pop_front();
        }
        Ok(())
    }

    /// Asks the queue for a moment of both clocks.
    fn clocks(&mut self) -> Result<Clocks, Error> {
        self.check_timestamps()?;
        let period = f64::from(self.device.adapter.info.capabilities.timestamp_period_ns);
        Clocks::read(TIMESTAMP_BITS, period, || {
            let (mut ticks, mut host) = (0, 0);
            // SAFETY: the queue is valid, and what is written lives through the call.
            unsafe { self.device.queue().GetClockCalibration(&mut ticks, &mut host) }
                .map_err(|e| self.device.error("ID3D12CommandQueue::GetClockCalibration", &e))?;
            Ok(ticks)
        })
    }

    fn recorded(&self) -> usize {
        self.recorded + self.encoder.recorded()
    }

    fn submit(&mut self) -> Result<Ticket, Error> {
        self.device.check()?;
        if self.recorded() == 0 && !self.owed {
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
        self.reclaim()
    }

    fn wait_idle(&mut self) -> Result<(), Error> {
        let last = self.submit()?;
        self.wait(last)
    }

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("recorded", &self.recorded())
            .field("pending", &self.pending.len())
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    /// Lists and queries may be released afterwards: nothing is pending, or the device is lost,
    /// after which objects may be released, or it hangs and they are leaked.
    fn drop(&mut self) {
        // Also after a simulated loss, when the device in fact still works.
        let last = self.timeline.last_ticket().0;
        if self.device.is_hung() || self.timeline.block(last, false, &mut || false).is_err() && self.device.is_hung() {
            std::mem::forget(std::mem::take(&mut self.pending));
            std::mem::forget(self.queries.take());
        }
    }
}
