//! From what was captured to commands that the device can run as often as wanted.

use crate::backend::Segment;
use crate::capture::capturing::{Capturing, Node};
use crate::error::Error;
use crate::fusion::chain::Fusion;
use crate::graph::replay::GraphStats;
use crate::graph::schedule::Schedule;
use crate::graph::{fuse, schedule};
use crate::kernels::parts::{Part, parts};
use crate::queue::device_queue::DeviceQueue;
use crate::queue::policy::WorkBound;
use crate::submit::batch::Replay;
use dml_gpu::traits::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Some of a graph's commands, as many as are submitted at once: the numbers of nodes, and what
/// runs of each.
#[derive(Default)]
struct Steps {
    steps: Vec<(usize, Part)>,
    work: u64,
}

/// Fuses, schedules and records the commands of a capture. They are one recording, or several if
/// they do more than one submission should.
///
/// # Errors
/// [`Error::Compile`]; [`Error::DeviceLost`]; what the driver said.
pub(crate) fn build(
    queue: &DeviceQueue,
    fusion: &Mutex<Fusion>,
    mut capture: Capturing,
) -> Result<(Vec<Arc<Replay>>, GraphStats), Error> {
    let (gpu, submission) = (queue.gpu(), &queue.submission);
    if gpu.is_lost() {
        submission.lose(); // Nothing else finds out where nothing was captured.
    }
    submission.alive()?;
    fuse::fuse(&mut capture, &mut fusion.lock().unwrap_or_else(PoisonError::into_inner));
    let Capturing { nodes, commands, bytes, ranges, constants, reports, .. } = capture;
    // Compiled here, and not with the queue locked.
    for node in &nodes {
        submission.wrap(node.compile(gpu))?;
    }
    let accesses = || nodes.iter().map(|node| node.ranges(&ranges));
    let schedule = schedule::levels(accesses());
    let constants: Arc<[Segment]> = constants.into_segments().into();
    let state = queue.lock();
    let record = |steps: &Steps| {
        let mut barriers = 1; // A recording begins with one.
        let recording = gpu.record::<Error>(Arc::clone(&constants), |commands, constants| {
            let mut level = None;
            for (at, part) in &steps.steps {
                if level.replace(schedule.level[*at]).is_some_and(|before| before != schedule.level[*at]) {
                    commands.barrier();
                    barriers += 1;
                }
                match &nodes[*at] {
                    Node::Launch { kernel, push, .. } => {
                        let push = &bytes[push.clone()];
                        commands.dispatch_from(kernel.pipeline(gpu)?, push, part.base, part.groups)?;
                    }
                    Node::Copy { constant, from, slot, to, bytes, .. } => {
                        if let Some(segment) = state.memory.segment(*slot) {
                            commands.copy(&constants[*constant], *from, segment, *to, *bytes)?;
                        }
                    }
                    Node::Free { .. } => {}
                }
            }
            Ok(())
        })?;
        let last = steps.steps.last().map(|(at, _)| schedule.level[*at]);
        let last = steps.steps.iter().filter(|(at, _)| Some(schedule.level[*at]) == last);
        let (read_last, mut written_last) = schedule::accessed(last.map(|(at, _)| nodes[*at].ranges(&ranges)));
        if reports {
            written_last.insert(queue.fault.of_graphs());
        }
        let (launches, work) = (steps.steps.len() as u32, steps.work);
        Ok(Arc::new(Replay { recording, launches, barriers, work, read_last, written_last }))
    };
    let replays: Result<Vec<_>, Error> = submissions(&nodes, &schedule, &queue.work_bound).iter().map(record).collect();
    drop(state);
    let replays = submission.wrap(replays)?;
    let stats = GraphStats {
        captured: commands,
        launches: replays.iter().map(|replay| replay.launches).sum(),
        barriers: replays.iter().map(|replay| replay.barriers).sum(),
        barriers_in_order: schedule::barriers_in_order(accesses()),
    };
    Ok((replays, stats))
}

/// The commands in the order in which they run, in groups that do no more than one submission
/// should.
fn submissions(nodes: &[Node], schedule: &Schedule, bound: &WorkBound) -> Vec<Steps> {
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
    for &at in &schedule.order {
        match &nodes[at] {
            Node::Launch { kernel, groups, work, .. } => {
                parts(kernel, *groups, *work, |groups| bound.of_launch(groups)).for_each(|part| add(at, part));
            }
            Node::Copy { .. } | Node::Free { .. } => add(at, Part { base: [0; 3], groups: [0; 3], work: 0 }),
        }
    }
    all
}
