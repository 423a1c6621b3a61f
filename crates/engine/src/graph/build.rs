//! From what was captured to commands that the device can run as often as wanted.

use crate::capture::capturing::{Capturing, Node};
use crate::error::Error;
use crate::fusion::chain::Fusion;
use crate::graph::replay::GraphStats;
use crate::graph::{fuse, schedule};
use crate::queue::device_queue::DeviceQueue;
use crate::submit::batch::Replay;
use std::sync::{Mutex, PoisonError};

/// Fuses, schedules and records the commands of a capture.
///
/// # Errors
/// [`Error::Compile`]; [`Error::DeviceLost`]; what the driver said.
pub(crate) fn build(
    queue: &DeviceQueue,
    fusion: &Mutex<Fusion>,
    mut capture: Capturing,
) -> Result<(Replay, GraphStats), Error> {
    let (gpu, submission) = (queue.gpu(), &queue.submission);
    fuse::fuse(&mut capture, &mut fusion.lock().unwrap_or_else(PoisonError::into_inner), gpu);
    let Capturing { nodes, commands, bytes, ranges, constants, reports, .. } = capture;
    // Compiled here, and not with the queue locked.
    for node in &nodes {
        submission.wrap(node.compile(gpu))?;
    }
    let accesses = || nodes.iter().map(|node| node.ranges(&ranges));
    let schedule = schedule::levels(accesses());
    let state = queue.lock();
    let recording = gpu.record::<Error>(constants.into_segments(), |commands, constants| {
        let mut level = 0;
        for &at in &schedule.order {
            if schedule.level[at] != level {
                level = schedule.level[at];
                commands.barrier();
            }
            match &nodes[at] {
                Node::Launch { kernel, push, groups, .. } => {
                    commands.dispatch(kernel.pipeline(gpu)?, &bytes[push.clone()], *groups)?;
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
    });
    drop(state);
    let recording = submission.wrap(recording)?;
    let launches = nodes.len() as u32;
    let barriers = schedule.levels;
    let barriers_in_order = schedule::barriers_in_order(accesses());
    let (read_last, mut written_last) = schedule::last(&schedule, accesses());
    if reports {
        written_last.insert(queue.fault.of_graphs());
    }
    let stats = GraphStats { captured: commands, launches, barriers, barriers_in_order };
    Ok((Replay { recording, launches, barriers, read_last, written_last }, stats))
}
