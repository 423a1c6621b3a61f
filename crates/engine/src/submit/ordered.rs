//! A recorder that orders commands: it puts a barrier before a command where the bytes that it
//! accesses need one, and nowhere else. It also counts what it records, and writes the profile
//! while there is one.

use crate::backend::{Gpu, Recorder, Segment, TimestampId};
use crate::commands::encode::Encodable;
use crate::commands::list::{Command, CommandKind, CommandList};
use crate::commands::replay::Replay;
use crate::error::Error;
use crate::fusion::chain::FusedLaunch;
use crate::memory::range::AddressRange;
use crate::profile::activity::{Activity, Origin, Work};
use crate::profile::measure::{self, Stage};
use crate::profile::sink::{self, CommandInfo, Profile};
use crate::submit::barriers::{Barriers, Order};
use crate::submit::statistics::QueueStats;
use dml_gpu::Ticket;
use dml_gpu::traits::*;

/// The recorder of a device, with the state that the next command is ordered by.
pub(crate) struct OrderedRecorder {
    recorder: Recorder,
    barriers: Barriers,
    /// All counters but the numbers of commands and waits.
    stats: QueueStats,
    /// While the device is profiled.
    profile: Option<Box<Profile>>,
}

impl OrderedRecorder {
    /// Orders the commands of a new recorder.
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, barriers: Barriers::default(), stats: QueueStats::default(), profile: None }
    }

    /// All counters but the numbers of commands and waits.
    pub(crate) fn stats(&self) -> QueueStats {
        self.stats
    }

    // ---- recording

    /// Records a command of a list, whose staged bytes lie in `staging`. A free records nothing.
    ///
    /// # Errors
    /// [`Error::Compile`]; what the driver said. The command is then left out.
    pub(crate) fn record_command(
        &mut self,
        gpu: &Gpu,
        list: &CommandList,
        command: &Command,
        staging: &[Segment],
    ) -> Result<(), Error> {
        let order = match &command.kind {
            CommandKind::Launch { .. } | CommandKind::Copy { .. } => Order::AfterConflicts,
            CommandKind::LaunchPart(part) => Order::BesideParts(part.of.launch),
            CommandKind::Free { .. } => return Ok(()),
            CommandKind::Timestamp(marker) => return marker.record(&mut self.recorder),
            CommandKind::Replay(replay) => return self.record_replay(list, command, replay),
        };
        let Some(encodable) = Encodable::of(gpu, list, command, staging)? else { return Ok(()) };
        tracing::trace!("{command}");
        let (reads, writes) = list.ranges(command);
        self.order(order, reads, writes);
        let info = || info(list, command);
        let encode = |recorder: &mut Recorder| encodable.encode(recorder);
        sink::record(&mut self.profile, &mut self.recorder, info, encode)
            .inspect_err(|e| tracing::debug!("{command} was not recorded: {e}"))?;
        Ok(())
    }

    fn record_replay(&mut self, list: &CommandList, command: &Command, replay: &Replay) -> Result<(), Error> {
        let info = || info(list, command);
        let execute = |recorder: &mut Recorder| recorder.execute(&replay.recording);
        sink::record(&mut self.profile, &mut self.recorder, info, execute)?;
        self.barriers.after_replay(&replay.read_last, &replay.written_last);
        self.stats.barriers += u64::from(replay.barriers);
        Ok(())
    }

    /// Records the one launch that stands for a chain, of which `last` is the last command.
    ///
    /// # Errors
    /// As [`record_command`](Self::record_command).
    pub(crate) fn record_fused(
        &mut self,
        gpu: &Gpu,
        list: &CommandList,
        fused: &FusedLaunch,
        last: &Command,
    ) -> Result<(), Error> {
        let pipeline = fused.kernel.pipeline(gpu)?;
        tracing::trace!("{}: {}, fused, {:?}", last.operator, fused.kernel.name(), fused.groups);
        self.order(Order::AfterConflicts, &fused.reads, &fused.writes);
        let info = || CommandInfo {
            work: Work::launch(&fused.kernel, fused.groups, last.operator),
            operator: last.operator,
            origin: list.origin(last),
            accesses: [&fused.reads, &fused.writes],
        };
        let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, &fused.params, fused.groups);
        sink::record(&mut self.profile, &mut self.recorder, info, dispatch)?;
        self.stats.fused_launches += u64::from(fused.launches);
        self.stats.fused_kernels += 1;
        Ok(())
    }

    /// Records a command that is in no list.
    ///
    /// # Errors
    /// The command's.
    pub(crate) fn record(
        &mut self,
        work: Work,
        operator: &'static str,
        accesses: [&[AddressRange]; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<(), Error> {
        self.record_in_order(Order::AfterConflicts, work, operator, accesses, command)
    }

    /// Records a read that the host polls for, as the last command of a submission. When it runs,
    /// all earlier work but other polled reads is done, and visible to it.
    ///
    /// Returns the ticket after which the host sees what earlier commands wrote to mapped memory
    /// for it: the read may overtake their barrier for the host.
    ///
    /// # Errors
    /// The command's.
    pub(crate) fn record_polled(
        &mut self,
        operator: &'static str,
        [read, written]: [AddressRange; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<Ticket, Error> {
        self.record_in_order(Order::AfterAll, Work::Download, operator, [&[read], &[written]], command)?;
        Ok(self.barriers.shown())
    }

    fn record_in_order(
        &mut self,
        order: Order,
        work: Work,
        operator: &'static str,
        accesses: [&[AddressRange]; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
    ) -> Result<(), Error> {
        let [reads, writes] = accesses;
        self.order(order, reads, writes);
        let info = || CommandInfo { work, operator, origin: Origin::here(), accesses };
        Ok(sink::record(&mut self.profile, &mut self.recorder, info, command)?)
    }

    /// Records the barrier that the next command needs, if it needs one.
    #[inline]
    fn order(&mut self, order: Order, reads: &[AddressRange], writes: &[AddressRange]) {
        if self.barriers.before(order, reads, writes) {
            self.recorder.barrier();
            self.stats.barriers += 1;
        }
    }

    // ---- visibility to the host

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

    // ---- submitting and completion

    /// Submits what was recorded, even if it is nothing, as `ticket`, which is the next one. It
    /// does `work` operations.
    ///
    /// # Errors
    /// What the driver said. The ticket completes all the same, unless the device is lost.
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

    /// All commands up to `ticket` are complete, and the host has waited for them.
    pub(crate) fn retire(&mut self, ticket: Ticket) {
        if ticket >= self.recorder.last_ticket() && self.recorder.recorded() == 0 {
            self.barriers.idle();
        }
    }

    /// Waits until the driver, too, is done with all that was submitted.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn wait_idle(&mut self) -> Result<(), Error> {
        Ok(self.recorder.wait_idle()?)
    }

    // ---- times

    /// Nanoseconds from one timestamp to another; `None` if one is not known.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        Ok(self.recorder.elapsed_ns(from, to)?)
    }

    /// A batch was recorded: takes the times that are known by now.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn collect_times(&mut self) -> Result<(), Error> {
        match &mut self.profile {
            Some(profile) => Ok(profile.collect_times(&mut self.recorder)?),
            None => Ok(()),
        }
    }

    /// Profiles what is recorded from now on.
    ///
    /// # Errors
    /// [`dml_gpu::Error::Unsupported`] without timestamps; [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn start_profile(&mut self) -> Result<(), Error> {
        self.profile = Some(Box::new(Profile::new(self.recorder.clocks()?)));
        Ok(())
    }

    /// Ends the profile. Everything must be complete.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn stop_profile(&mut self, device: usize) -> Result<Vec<Activity>, Error> {
        let profile = self.profile.take();
        Ok(profile.map_or(Ok(Vec::new()), |profile| profile.finish(device, &mut self.recorder))?)
    }
}

/// What a command of a list is, for the profile.
fn info<'l>(list: &'l CommandList, command: &'l Command) -> CommandInfo<'l> {
    let launch = |kernel, groups| Work::launch(kernel, groups, command.operator);
    let (work, once) = match &command.kind {
        CommandKind::Launch { kernel, groups, .. } => (launch(kernel, *groups), true),
        // The profile has the bytes of the whole launch, with the first part.
        CommandKind::LaunchPart(part) => (launch(&part.kernel, part.groups), part.of.base == [0; 3]),
        CommandKind::Replay(replay) => (Work::Replay(replay.launches), true),
        CommandKind::Copy { .. } | CommandKind::Free { .. } | CommandKind::Timestamp(_) => (Work::Upload, true),
    };
    let accesses = if once { list.ranges(command).into() } else { [&[][..]; 2] };
    CommandInfo { work, operator: command.operator, origin: list.origin(command), accesses }
}
