//! The command stream of one device: records batches and submits them.
//!
//! Entries are recorded in order, with a barrier only where bytes overlap ([`Barriers`]), and
//! pointwise chains as one launch. The stream has a lock of its own, so that a thread can enqueue
//! while another records what was handed over (see [`crate::submit::handover`]).

use crate::backend::{Gpu, Recorder, Segment, TimestampId};
use crate::error::Error;
use crate::fusion::chain::{Fused, Fusion};
use crate::kernels::kernel::KernelRef;
use crate::kernels::store::KernelStore;
use crate::memory::range::AddressRange;
use crate::profile::activity::{Activity, Origin, Work};
use crate::profile::measure::{self, Stage};
use crate::profile::sink::{self, Note, Profile};
use crate::submit::barriers::Barriers;
use crate::submit::batch::{Batch, Command, Entry, LaunchPart};
use crate::submit::errors::Errors;
use crate::submit::statistics::QueueStats;
use crate::threads::ThreadNumber;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use smallvec::SmallVec;
use std::sync::Arc;

pub(crate) struct Stream {
    recorder: Recorder,
    barriers: Barriers,
    fusion: Fusion,
    /// What copies from the ring read.
    ring: Arc<Segment>,
    /// What is counted here: all but commands and waits.
    stats: QueueStats,
    /// While the device is profiled.
    profile: Option<Box<Profile>>,
}

impl Stream {
    /// A stream over a new recorder, for batches whose kernels are in this store and whose uploads
    /// lie in this ring.
    pub(crate) fn new(recorder: Recorder, kernels: Arc<KernelStore>, ring: Arc<Segment>) -> Self {
        Self {
            recorder,
            barriers: Barriers::default(),
            fusion: Fusion::new(kernels),
            ring,
            stats: QueueStats::default(),
            profile: None,
        }
    }

    pub(crate) fn stats(&self) -> QueueStats {
        self.stats
    }

    /// What was submitted is visible to the host as soon as it is done.
    pub(crate) fn is_host_visible(&self) -> bool {
        self.barriers.is_host_visible()
    }

    /// Makes what was recorded visible to the host when the next submission is done.
    pub(crate) fn host_barrier(&mut self) {
        if self.barriers.before_host() {
            self.recorder.host_barrier();
        }
    }

    /// Records a batch. An entry that fails is left out; the errors are returned, with whose they
    /// are.
    pub(crate) fn record(&mut self, gpu: &Gpu, batch: &Batch) -> Errors {
        let _stage = measure::enter(Stage::Record);
        let mut errors = Errors::default();
        for i in 0..=batch.entries.len() {
            let entry = batch.entries.get(i);
            match entry.map(|e| &e.command) {
                Some(Command::Launch { kernel, push, push_len, .. })
                    if self.offer(batch, i, kernel, *push, *push_len) =>
                {
                    continue;
                }
                Some(Command::Free { address }) => {
                    self.fusion.freed(*address);
                    continue;
                }
                _ => {}
            }
            // What follows is no part of the chain.
            self.run_chain(gpu, batch, &mut errors);
            let Some(entry) = entry else { break };
            if let Command::Launch { kernel, push, push_len, .. } = &entry.command
                && self.offer(batch, i, kernel, *push, *push_len)
            {
                continue;
            }
            errors.note(entry.thread, self.record_entry(gpu, batch, entry));
        }
        if let Some(profile) = &mut self.profile
            && let Err(e) = profile.recorded(&mut self.recorder)
        {
            errors.note(ThreadNumber::here(), Err(e.into()));
        }
        errors
    }

    /// Offers a launch to the open chain, or to a new one.
    fn offer(&mut self, batch: &Batch, entry: usize, kernel: &KernelRef, push: u32, push_len: u32) -> bool {
        self.fusion.offer(entry, kernel, batch.push(push, push_len), push as usize)
    }

    /// Closes the open chain and records it.
    fn run_chain(&mut self, gpu: &Gpu, batch: &Batch, errors: &mut Errors) {
        if !self.fusion.is_open() {
            return;
        }
        if let Some(fused) = self.fusion.fused(&batch.bytes) {
            let last = self.fusion.entries().last().map(|i| &batch.entries[i]);
            if let Some(last) = last {
                errors.note(last.thread, self.record_fused(gpu, &fused, batch, last));
            }
        } else {
            let members: SmallVec<[usize; 16]> = self.fusion.entries().collect();
            for i in members {
                let entry = &batch.entries[i];
                errors.note(entry.thread, self.record_entry(gpu, batch, entry));
            }
        }
        self.fusion.close();
    }

    /// `last` is the entry of the chain's last launch.
    fn record_fused(&mut self, gpu: &Gpu, fused: &Fused, batch: &Batch, last: &Entry) -> Result<(), Error> {
        let pipeline = fused.kernel.pipeline(gpu)?;
        tracing::trace!("{}: {}, fused, {:?}", last.operator, fused.kernel.name(), fused.groups);
        self.order(&fused.reads, &fused.writes);
        let note = || Note {
            work: Work::launch(&fused.kernel, fused.groups, last.operator),
            operator: last.operator,
            origin: origin(batch, last),
            reads: &fused.reads,
            writes: &fused.writes,
        };
        let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, &fused.params, fused.groups);
        sink::record(&mut self.profile, &mut self.recorder, note, dispatch)?;
        self.stats.fused_launches += u64::from(fused.launches);
        self.stats.fused_kernels += 1;
        Ok(())
    }

    fn record_entry(&mut self, gpu: &Gpu, batch: &Batch, entry: &Entry) -> Result<(), Error> {
        let (reads, writes) = batch.ranges(entry);
        match &entry.command {
            Command::Launch { kernel, push, push_len, groups } => {
                let pipeline = kernel.pipeline(gpu)?;
                self.order(reads, writes);
                let push = batch.push(*push, *push_len);
                tracing::trace!("{}: {}, {groups:?}", entry.operator, kernel.name());
                let note = || Note {
                    work: Work::launch(kernel, *groups, entry.operator),
                    operator: entry.operator,
                    origin: origin(batch, entry),
                    reads,
                    writes,
                };
                let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, push, *groups);
                sink::record(&mut self.profile, &mut self.recorder, note, dispatch).inspect_err(|e| {
                    tracing::debug!("{}: {} was not recorded: {e}", entry.operator, kernel.name());
                })?;
            }
            Command::Part(part) => {
                let LaunchPart { kernel, base, groups, .. } = &**part;
                let pipeline = kernel.pipeline(gpu)?;
                let needed = self.barriers.before_part(part.launch, reads, writes);
                self.barrier_if(needed);
                let push = batch.push(part.push, part.push_len);
                tracing::trace!("{}: {}, {groups:?} from {base:?} on", entry.operator, kernel.name());
                // The launch's bytes are the first part's.
                let (reads, writes) = if *base == [0; 3] { (reads, writes) } else { Default::default() };
                let note = || Note {
                    work: Work::launch(kernel, *groups, entry.operator),
                    operator: entry.operator,
                    origin: origin(batch, entry),
                    reads,
                    writes,
                };
                let dispatch = |recorder: &mut Recorder| recorder.dispatch_from(pipeline, push, *base, *groups);
                sink::record(&mut self.profile, &mut self.recorder, note, dispatch)?;
            }
            Command::Upload { from, to, offset, bytes } => {
                self.order(reads, writes);
                let origin = origin(batch, entry);
                let note = || Note { work: Work::Upload, operator: entry.operator, origin, reads, writes };
                let copy = |recorder: &mut Recorder| recorder.copy(&self.ring, *from, to, *offset, *bytes);
                sink::record(&mut self.profile, &mut self.recorder, note, copy)?;
            }
            Command::Free { address } => tracing::trace!("free {address:#x}"),
            Command::Event(marker) => marker.record(&mut self.recorder)?,
            Command::Replay(replay) => {
                let (work, origin) = (Work::Replay(replay.launches), origin(batch, entry));
                let note = || Note { work, operator: entry.operator, origin, reads, writes };
                let execute = |recorder: &mut Recorder| recorder.execute(&replay.recording);
                sink::record(&mut self.profile, &mut self.recorder, note, execute)?;
                self.barriers.after_replay(&replay.read_last, &replay.written_last);
                self.stats.barriers += u64::from(replay.barriers);
            }
        }
        Ok(())
    }

    /// Notes the accesses of the command that is recorded next, and records the barrier that it
    /// needs.
    fn order(&mut self, reads: &[AddressRange], writes: &[AddressRange]) {
        let needed = self.barriers.before(reads, writes);
        self.barrier_if(needed);
    }

    fn barrier_if(&mut self, needed: bool) {
        if needed {
            self.recorder.barrier();
            self.stats.barriers += 1;
        }
    }

    /// Records a read that the host polls for, as the last command of a submission. When it runs,
    /// all earlier work but other such reads is done, and visible to it.
    ///
    /// Returns the ticket after which the host sees what earlier commands wrote to mapped memory
    /// for it: the read may overtake their barrier for the host.
    pub(crate) fn record_polled(
        &mut self,
        operator: &'static str,
        [read, written]: [AddressRange; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<Ticket, Error> {
        let (reads, writes) = (&[read][..], &[written][..]);
        let needed = self.barriers.before_polled(reads, writes);
        self.barrier_if(needed);
        self.record_noted(Work::Download, operator, [reads, writes], command)?;
        Ok(self.barriers.shown())
    }

    /// Records a command that is in no batch, with the barrier that it needs.
    pub(crate) fn record_command(
        &mut self,
        work: Work,
        operator: &'static str,
        [reads, writes]: [&[AddressRange]; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<(), Error> {
        self.order(reads, writes);
        self.record_noted(work, operator, [reads, writes], command)
    }

    fn record_noted(
        &mut self,
        work: Work,
        operator: &'static str,
        [reads, writes]: [&[AddressRange]; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<(), Error> {
        let note = || Note { work, operator, origin: Origin::here(), reads, writes };
        Ok(sink::record(&mut self.profile, &mut self.recorder, note, command)?)
    }

    /// Submits what was recorded, if only nothing, as `ticket`, which is the next one. It does so
    /// much work.
    pub(crate) fn submit(&mut self, ticket: Ticket, work: u64) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Submit);
        let submitted = self.recorder.submit_next();
        tracing::trace!("submitted as {}", ticket.0);
        debug_assert!(submitted.is_err() || submitted == Ok(ticket), "tickets are given in the order of submission");
        self.stats.submits += 1;
        self.stats.most_work = self.stats.most_work.max(work);
        self.barriers.submitted(ticket);
        submitted?;
        Ok(())
    }

    /// All commands up to `ticket` are done, and the host has waited for them.
    pub(crate) fn completed(&mut self, ticket: Ticket) {
        if ticket >= self.recorder.last_ticket() && self.recorder.recorded() == 0 {
            self.barriers.idle();
        }
    }

    /// Waits until the driver, too, is done with all that was submitted.
    pub(crate) fn wait_idle(&mut self) -> Result<(), Error> {
        Ok(self.recorder.wait_idle()?)
    }

    /// Nanoseconds from one timestamp to another; `None` if one is not known.
    pub(crate) fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        Ok(self.recorder.elapsed_ns(from, to)?)
    }

    /// Notes from now on what is recorded, and when it ran.
    pub(crate) fn start_profile(&mut self) -> Result<(), Error> {
        self.profile = Some(Box::new(Profile::new(self.recorder.clocks()?)));
        Ok(())
    }

    /// Ends the profile. Everything must be done.
    pub(crate) fn stop_profile(&mut self, device: usize) -> Result<Vec<Activity>, Error> {
        let profile = self.profile.take();
        Ok(profile.map_or(Ok(Vec::new()), |profile| profile.finish(device, &mut self.recorder))?)
    }
}

/// What enqueued an entry.
fn origin(batch: &Batch, entry: &Entry) -> Origin {
    batch.origins.get((entry.origin as usize).wrapping_sub(1)).copied().unwrap_or_else(Origin::here)
}
