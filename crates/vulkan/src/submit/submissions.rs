//! Submissions: their parts, and the objects that must live until they are complete.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;
use dml_gpu::Ticket;

use super::timeline::Timeline;
use crate::command::{CommandBuffer, CommandPool, Recording};
use crate::device::DeviceShared;
use crate::error::Error;

/// The largest number of pending submissions; the next one waits for the oldest.
const MAX_PENDING: usize = 256;
/// With markers, finished submissions are reclaimed when this many are pending.
const RECLAIM_AT: usize = 64;

/// A part of a submission. Parts run in order.
pub(super) enum Part {
    /// Commands that run once.
    Encoded(CommandBuffer),
    /// Commands that were recorded earlier, and may be pending several times.
    Recorded(Recording),
}

/// A submission, and the objects that it needs until it is complete.
#[derive(Default)]
struct Submission {
    ticket: Ticket,
    parts: Vec<Part>,
    /// Tickets of other timelines that it waits for.
    after: Vec<(Timeline, u64)>,
}

/// The submissions of a recorder and their command buffers, which are reused.
pub(super) struct Submissions {
    pool: Arc<CommandPool>,
    next: Submission,
    /// The number of submissions that were submitted or discarded before this one.
    serial: u64,
    /// The submitted ones, oldest first.
    pending: VecDeque<Submission>,
    /// Command buffers that are not pending.
    free: Vec<CommandBuffer>,
    /// Empty submissions, kept for the memory of their vectors.
    spare: Vec<Submission>,
}

impl Submissions {
    pub(super) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT;
        Ok(Self {
            pool: CommandPool::new(device, flags)?,
            next: Submission::default(),
            serial: 0,
            pending: VecDeque::new(),
            free: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// A command buffer that is not pending: a finished one, else a new one, else, if too many are
    /// pending, the oldest.
    pub(super) fn next_buffer(&mut self, timeline: &Timeline) -> Result<CommandBuffer, Error> {
        if self.free.is_empty() && !self.pending.is_empty() {
            self.reclaim(timeline)?;
            if self.free.is_empty() && self.pending.len() >= MAX_PENDING {
                let oldest = self.pending.front().map_or(0, |submission| submission.ticket.0);
                timeline.block(oldest, true)?;
                self.reclaim(timeline)?;
            }
        }
        self.free.pop().map_or_else(|| self.pool.allocate(), Ok)
    }

    /// Returns a command buffer that was not used.
    pub(super) fn give_back(&mut self, buffer: CommandBuffer) {
        self.free.push(buffer);
    }

    /// Adds to the next submission.
    pub(super) fn push(&mut self, part: Part) {
        self.next.parts.push(part);
    }

    /// Delays the next submission until a ticket of another timeline is complete.
    pub(super) fn wait_for(&mut self, timeline: &Timeline, ticket: Ticket) {
        self.next.after.push((timeline.clone(), ticket.0));
    }

    /// The command buffers of the next submission.
    pub(super) fn parts(&self) -> impl Iterator<Item = vk::CommandBuffer> {
        self.next.parts.iter().map(|part| match part {
            Part::Encoded(buffer) => buffer.raw(),
            Part::Recorded(recording) => recording.raw(),
        })
    }

    /// The tickets that the next submission waits for.
    pub(super) fn after(&self) -> &[(Timeline, u64)] {
        &self.next.after
    }

    /// Distinguishes the next submission from earlier ones, also from a discarded one that had the
    /// same ticket.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// The next submission is submitted.
    pub(super) fn submitted(&mut self, ticket: Ticket) {
        self.serial += 1;
        self.next.ticket = ticket;
        let empty = self.spare.pop().unwrap_or_default();
        self.pending.push_back(std::mem::replace(&mut self.next, empty));
    }

    /// Discards the parts of the next submission and the tickets that it waits for.
    pub(super) fn discard(&mut self) {
        self.serial += 1;
        let next = std::mem::take(&mut self.next);
        self.empty(next);
    }

    /// The number of submissions that were submitted and not reclaimed.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// All submissions up to `done` are complete: reclaims them if it is worth a query to the
    /// driver.
    pub(super) fn completed(&mut self, timeline: &Timeline, done: Ticket) -> Result<(), Error> {
        let enough = if timeline.has_marker() { RECLAIM_AT } else { 1 };
        let finished = self.pending.front().is_some_and(|submission| submission.ticket <= done);
        if finished && self.pending.len() >= enough {
            self.reclaim(timeline)?;
        }
        Ok(())
    }

    /// Reclaims the submissions that the driver is done with.
    pub(super) fn reclaim(&mut self, timeline: &Timeline) -> Result<(), Error> {
        let retired = timeline.retired()?;
        while self.pending.front().is_some_and(|submission| submission.ticket.0 <= retired) {
            if let Some(submission) = self.pending.pop_front() {
                self.empty(submission);
            }
        }
        Ok(())
    }

    /// Reclaims the objects of a submission that is not pending.
    fn empty(&mut self, mut submission: Submission) {
        for part in submission.parts.drain(..) {
            if let Part::Encoded(mut buffer) = part {
                buffer.clear();
                self.free.push(buffer);
            }
        }
        submission.after.clear();
        self.spare.push(submission);
    }
}
