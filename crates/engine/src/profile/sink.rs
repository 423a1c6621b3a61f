//! The profile of a device: every command is recorded between two timestamps, which costs GPU time.
//! The code that records commands writes into the profile, which knows of a command what its
//! [`CommandInfo`] says.

use crate::backend::Recorder;
use crate::memory::range::AddressRange;
use crate::profile::activity::{Activity, Origin, Work};
use dml_gpu::traits::*;
use dml_gpu::{Clocks, Span};

/// What was recorded since the profile began.
pub(crate) struct Profile {
    start: Clocks,
    /// What was recorded; a span's id is the index. The times of the run are not known yet.
    activities: Vec<Activity>,
    spans: Vec<(u64, Span)>,
}

/// What a command is, for the profile.
pub(crate) struct CommandInfo<'a> {
    pub(crate) work: Work,
    pub(crate) operator: &'static str,
    pub(crate) origin: Origin,
    /// Reads and writes.
    pub(crate) accesses: [&'a [AddressRange]; 2],
}

/// Records a command, between two timestamps if there is a profile.
#[inline]
pub(crate) fn record<'a>(
    profile: &mut Option<Box<Profile>>,
    recorder: &mut Recorder,
    info: impl FnOnce() -> CommandInfo<'a>,
    command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
) -> Result<(), dml_gpu::Error> {
    match profile {
        None => command(recorder),
        Some(profile) => {
            let id = profile.add(info());
            recorder.timed(id, command)
        }
    }
}

impl Profile {
    /// A profile that begins at `start`.
    pub(crate) fn new(start: Clocks) -> Self {
        Self { start, activities: Vec::new(), spans: Vec::new() }
    }

    /// A batch was recorded: takes the times that are known by now.
    pub(crate) fn collect_times(&mut self, recorder: &mut Recorder) -> Result<(), dml_gpu::Error> {
        recorder.take_spans(&mut self.spans)
    }

    /// Adds a command, and returns the id of its span.
    fn add(&mut self, info: CommandInfo<'_>) -> u64 {
        let CommandInfo { work, operator, origin, accesses: [reads, writes] } = info;
        let bytes = |ranges: &[AddressRange]| ranges.iter().map(|range| range.end - range.start).sum();
        self.activities.push(Activity {
            device: 0,
            work,
            operator,
            bytes_read: bytes(reads),
            bytes_written: bytes(writes),
            correlation: origin.correlation,
            enqueued_ns: origin.enqueued_ns,
            ran_ns: [0; 2],
        });
        self.activities.len() as u64 - 1
    }

    /// The activities whose times are known, with them. Everything must be done.
    pub(crate) fn finish(mut self, device: usize, recorder: &mut Recorder) -> Result<Vec<Activity>, dml_gpu::Error> {
        recorder.take_spans(&mut self.spans)?;
        let end = recorder.clocks()?;
        let Self { start, mut activities, spans, .. } = self;
        for (id, span) in spans {
            if let Some(activity) = activities.get_mut(id as usize) {
                activity.device = device;
                activity.ran_ns = [start.unix_ns(&end, span.begin), start.unix_ns(&end, span.end)];
            }
        }
        activities.retain(|activity| activity.ran_ns[1] != 0);
        Ok(activities)
    }
}
