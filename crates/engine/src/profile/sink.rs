//! The notes of a device that is profiled: every command is recorded between two timestamps, which
//! costs GPU time. What records commands writes into this; it knows nothing of them but what a
//! [`Note`] says.

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
pub(crate) struct Note<'a> {
    pub(crate) work: Work,
    pub(crate) operator: &'static str,
    pub(crate) origin: Origin,
    pub(crate) reads: &'a [AddressRange],
    pub(crate) writes: &'a [AddressRange],
}

/// Records a command, between two timestamps if there is a profile.
#[inline]
pub(crate) fn record<'a>(
    profile: &mut Option<Box<Profile>>,
    recorder: &mut Recorder,
    note: impl FnOnce() -> Note<'a>,
    command: impl FnOnce(&mut Recorder) -> Result<(), dml_gpu::Error>,
) -> Result<(), dml_gpu::Error> {
    match profile {
        None => command(recorder),
        Some(profile) => {
            let id = profile.note(note());
            recorder.timed(id, command)
        }
    }
}

impl Profile {
    /// A profile that begins at `start`.
    pub(crate) fn new(start: Clocks) -> Self {
        Self { start, activities: Vec::new(), spans: Vec::new() }
    }

    /// A batch was recorded.
    pub(crate) fn recorded(&mut self, recorder: &mut Recorder) -> Result<(), dml_gpu::Error> {
        recorder.take_spans(&mut self.spans)
    }

    /// Keeps a command, and returns the id of its span.
    fn note(&mut self, note: Note<'_>) -> u64 {
        let origin = note.origin;
        let bytes = |ranges: &[AddressRange]| ranges.iter().map(|range| range.end - range.start).sum();
        self.activities.push(Activity {
            device: 0,
            work: note.work,
            operator: note.operator,
            bytes_read: bytes(note.reads),
            bytes_written: bytes(note.writes),
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
