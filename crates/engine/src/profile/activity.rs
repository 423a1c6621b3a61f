//! What ran on a device and when, for a profiler. Off until [`start_profile`]; then every command is
//! recorded between two timestamps, which costs GPU time.

use crate::device::Device;
use crate::error::Error;
use crate::kernels::cache::KernelRef;
use crate::queue::launch::Range;
use crate::registry;
use crate::transfer::upload::UPLOAD;
use dml_vulkan::{Clocks, Recorder, Span, unix_now};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CORRELATION: Cell<u64> = const { Cell::new(0) };
}

/// Devices that are opened from now on are profiled from the start.
static PROFILING: AtomicBool = AtomicBool::new(false);

/// The calling thread's launches belong to the profiler's event of this id from now on; 0 is none.
pub fn set_correlation(id: u64) {
    CORRELATION.set(id);
}

/// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The device's index.
    pub device: usize,
    /// What ran.
    pub work: Work,
    /// The operator that enqueued it.
    pub operator: &'static str,
    /// Bytes that it named as read.
    pub bytes_read: u64,
    /// Bytes that it named as written.
    pub bytes_written: u64,
    /// What [`set_correlation`] said where it was enqueued.
    pub correlation: u64,
    /// When the host enqueued it: from, to.
    pub enqueued_ns: [u64; 2],
    /// When it ran: from, to. The activities of a device do not overlap: of two that ran at once, the second's time
    /// is what it took longer than the first.
    pub ran_ns: [u64; 2],
}

/// What an [`Activity`] did.
#[derive(Clone, Debug)]
pub enum Work {
    /// A run of a kernel, of so many workgroups.
    Kernel(KernelRef, [u32; 3]),
    /// A run of a graph of so many launches and copies: the time of all of them.
    Replay(u32),
    /// Bytes from the host.
    Upload,
    /// Bytes to the host.
    Download,
}

impl Work {
    pub(crate) fn launch(kernel: &KernelRef, groups: [u32; 3], operator: &str) -> Self {
        if operator == UPLOAD { Self::Upload } else { Self::Kernel(kernel.clone(), groups) }
    }
}

impl Activity {
    /// The kernel's name, "graph replay", "upload" or "download".
    pub fn name(&self) -> &str {
        match &self.work {
            Work::Kernel(kernel, _) => kernel.name(),
            Work::Replay(_) => "graph replay",
            Work::Upload => "upload",
            Work::Download => "download",
        }
    }
}

/// Begins to profile every device, those opened later included.
///
/// # Errors
/// [`dml_vulkan::Error::Unsupported`] of a device without timestamps; [`Error::DeviceLost`]. Other devices are profiled.
pub fn start_profile() -> Result<(), Error> {
    PROFILING.store(true, Ordering::SeqCst);
    registry::all_opened().map(|device| device.start_profile()).fold(Ok(()), Result::and)
}

/// Waits for every device, ends profiling, and returns what ran since [`start_profile`], each device's in its order.
/// A device that was lost meanwhile has nothing to tell.
pub fn stop_profile() -> Vec<Activity> {
    PROFILING.store(false, Ordering::SeqCst);
    let told = registry::all_opened().map(|device| {
        device.stop_profile().unwrap_or_else(|e| {
            tracing::warn!("the profile of device {} is lost: {e}", device.index());
            Vec::new()
        })
    });
    told.flatten().collect()
}

/// Whether devices are to be profiled from the start.
pub(crate) fn wanted() -> bool {
    PROFILING.load(Ordering::SeqCst)
}

impl Device {
    /// Waits for the device, and notes from then on what runs on it.
    ///
    /// # Errors
    /// [`dml_vulkan::Error::Unsupported`] without timestamps; [`Error::DeviceLost`]; an error of earlier work.
    pub fn start_profile(&self) -> Result<(), Error> {
        let shared = &**self.shared();
        shared.alive()?;
        let mut state = shared.lock();
        shared.drain_locked(&mut state)?;
        let mut stream = shared.up_to_date();
        let clocks = shared.wrap(stream.recorder().clocks())?;
        stream.profile = Some(Box::new(Profile::new(clocks)));
        state.queue.profiled = true;
        Ok(())
    }

    /// Waits for the device, and returns what ran on it since [`start_profile`](Self::start_profile); nothing if that
    /// was not called.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. An error of earlier work is a later call's.
    pub fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        let shared = &**self.shared();
        let mut state = shared.lock();
        if !state.queue.profiled {
            return Ok(Vec::new());
        }
        let drained = shared.drain_locked(&mut state);
        state.queue.profiled = false;
        let mut stream = shared.up_to_date();
        let profile = stream.profile.take();
        shared.alive()?;
        if let Err(e) = drained {
            shared.defer(e);
        }
        let Some(profile) = profile else { return Ok(Vec::new()) };
        shared.wrap(profile.finish(self.index(), stream.recorder()))
    }
}

/// What enqueued a command.
#[derive(Copy, Clone)]
pub(crate) struct Origin {
    correlation: u64,
    enqueued_ns: [u64; 2],
}

impl Origin {
    /// The calling thread, now.
    pub(crate) fn here() -> Self {
        let now = unix_now();
        Self { correlation: CORRELATION.get(), enqueued_ns: [now, now] }
    }

    /// The command is in the queue.
    pub(crate) fn enqueued(&mut self) {
        self.enqueued_ns[1] = unix_now();
    }
}

/// The stream's notes while the device is profiled.
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
    pub(crate) reads: &'a [Range],
    pub(crate) writes: &'a [Range],
}

/// Records a command, between two timestamps if there is a profile.
#[inline]
pub(crate) fn record<'a>(
    profile: &mut Option<Box<Profile>>,
    recorder: &mut Recorder,
    note: impl FnOnce() -> Note<'a>,
    command: impl FnOnce(&mut Recorder) -> Result<(), dml_vulkan::Error>,
) -> Result<(), dml_vulkan::Error> {
    match profile {
        None => command(recorder),
        Some(profile) => {
            let id = profile.note(note());
            recorder.timed(id, command)
        }
    }
}

impl Profile {
    fn new(start: Clocks) -> Self {
        Self { start, activities: Vec::new(), spans: Vec::new() }
    }

    /// A batch was recorded.
    pub(crate) fn recorded(&mut self, recorder: &mut Recorder) -> Result<(), dml_vulkan::Error> {
        recorder.take_spans(&mut self.spans)
    }

    /// Keeps a command, and returns the id of its span.
    fn note(&mut self, note: Note<'_>) -> u64 {
        let origin = note.origin;
        let bytes = |ranges: &[Range]| ranges.iter().map(|range| range.end - range.start).sum();
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
    fn finish(mut self, device: usize, recorder: &mut Recorder) -> Result<Vec<Activity>, dml_vulkan::Error> {
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
