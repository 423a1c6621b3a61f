//! From captured commands to recordings that the device can run as often as wanted.

use crate::backend::{Gpu, Segment};
use crate::capture::capturing::Capturing;
use crate::commands::encode::Encodable;
use crate::commands::list::{Command, CommandKind, CommandList};
use crate::commands::replay::Replay;
use crate::error::Error;
use crate::fusion::chain::Fusion;
use crate::fusion::run::Step;
use crate::graph::replay::GraphStats;
use crate::graph::schedule::{self, Schedule};
use crate::kernels::parts::{Part, parts};
use crate::memory::range::AddressRange;
use crate::queue::device_queue::DeviceQueue;
use crate::queue::policy::WorkBound;
use dml_gpu::traits::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Some of a graph's commands, as many as are submitted at once: their indices in the list, and the
/// part of each that runs.
#[derive(Default)]
struct Steps {
    steps: Vec<(usize, Part)>,
    work: u64,
}

/// A graph before it is recorded: its commands, and the order in which they run.
struct Scheduled {
    list: CommandList,
    schedule: Schedule,
    /// The segments that the list's staged bytes lie in.
    constants: Arc<[Segment]>,
    /// Where the graph's kernels may report index errors.
    reports: Option<AddressRange>,
}

/// Fuses, schedules and records the commands of a capture. They are one recording, or several if
/// they do more than one submission should.
///
/// # Errors
/// [`Error::Compile`]; [`Error::DeviceLost`]; what the driver said.
pub(crate) fn build(
    queue: &DeviceQueue,
    fusion: &Mutex<Fusion>,
    capture: Capturing,
) -> Result<(Vec<Arc<Replay>>, GraphStats), Error> {
    let (gpu, submission) = (queue.gpu(), &queue.submission);
    if gpu.is_lost() {
        submission.lose(); // Nothing else finds out where nothing was captured.
    }
    submission.alive()?;
    let Capturing { commands: captured, constants, reports, .. } = capture;
    let list = fuse(&mut fusion.lock().unwrap_or_else(PoisonError::into_inner), &captured);
    for kernel in list.commands().iter().filter_map(Command::kernel) {
        submission.check(kernel.pipeline(gpu))?;
    }
    let schedule = schedule::levels(accesses(&list));
    let barriers_in_order = schedule::barriers_in_order(accesses(&list));
    let reports = reports.then(|| queue.fault.of_graphs());
    let scheduled = Scheduled { list, schedule, constants: constants.into_segments().into(), reports };
    let replays: Result<Vec<_>, Error> =
        scheduled.submissions(&queue.work_bound).iter().map(|steps| scheduled.record(gpu, steps)).collect();
    let replays = submission.check(replays)?;
    let stats = GraphStats {
        captured: captured.count(),
        launches: replays.iter().map(|replay| replay.launches).sum(),
        barriers: replays.iter().map(|replay| replay.barriers).sum(),
        barriers_in_order,
    };
    Ok((replays, stats))
}

/// The commands with fused launches instead of chains, and without the frees.
fn fuse(fusion: &mut Fusion, captured: &CommandList) -> CommandList {
    let mut list = CommandList::with_room_for(captured);
    fusion.run(captured, |step| match step {
        Step::Command(command) => list.push_from(captured, command),
        Step::Fused(fused, last) => list.push_launch(&fused.as_launch(last.operator), None, None),
    });
    list
}

/// The reads and writes of each command.
fn accesses(list: &CommandList) -> impl Iterator<Item = (&[AddressRange], &[AddressRange])> {
    list.commands().iter().map(|command| list.ranges(command))
}

impl Scheduled {
    /// The commands in the order in which they run, in groups that do no more than one submission
    /// should.
    fn submissions(&self, bound: &WorkBound) -> Vec<Steps> {
        let mut all: Vec<Steps> = Vec::new();
        let mut add = |at: usize, part: Part| {
            if all.last().is_none_or(|last| last.work > 0 && bound.is_exceeded(last.work, part.work)) {
                all.push(Steps::default());
            }
            if let Some(last) = all.last_mut() {
                last.work = last.work.saturating_add(part.work);
                last.steps.push((at, part));
            }
        };
        for &at in &self.schedule.order {
            if let CommandKind::Launch { kernel, groups, work, .. } = &self.list.commands()[at].kind {
                parts(kernel, *groups, *work, |groups| bound.of_launch(groups)).for_each(|part| add(at, part));
            } else {
                add(at, Part { base: [0; 3], groups: [0; 3], work: 0 });
            }
        }
        all
    }

    /// Records some of the commands, with a barrier between levels.
    ///
    /// # Errors
    /// [`Error::Compile`]; what the driver said.
    fn record(&self, gpu: &Gpu, steps: &Steps) -> Result<Arc<Replay>, Error> {
        let Self { list, schedule, constants, reports } = self;
        let mut barriers = 1; // A recording begins with one.
        let recording = gpu.record::<Error>(Arc::clone(constants), |recorder, constants| {
            let mut level = None;
            for &(at, part) in &steps.steps {
                if level.replace(schedule.level[at]).is_some_and(|before| before != schedule.level[at]) {
                    recorder.barrier();
                    barriers += 1;
                }
                if let Some(encodable) = Encodable::of(gpu, list, &list.commands()[at], constants)? {
                    encodable.part(part).encode(recorder)?;
                }
            }
            Ok(())
        })?;
        let last = steps.steps.last().map(|&(at, _)| schedule.level[at]);
        let last = steps.steps.iter().filter(|&&(at, _)| Some(schedule.level[at]) == last);
        let (read_last, mut written_last) = schedule::accessed(last.map(|&(at, _)| list.ranges(&list.commands()[at])));
        if let Some(reports) = *reports {
            written_last.insert(reports);
        }
        let (launches, work) = (steps.steps.len() as u32, steps.work);
        Ok(Arc::new(Replay { recording, launches, barriers, work, read_last, written_last }))
    }
}
