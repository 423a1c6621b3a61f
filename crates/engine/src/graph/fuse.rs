//! Fuses a graph's pointwise launches, as the stream does with those that run once. A graph runs
//! many times: its fused kernels are made at the end of the capture, and not when their structure
//! has come often.

use crate::capture::capturing::{Capturing, Node};
use crate::fusion::chain::Fusion;
use crate::kernels::launch::work_of;

/// Replaces chains of launches by fused ones, and drops the frees.
pub(crate) fn fuse(capture: &mut Capturing, fusion: &mut Fusion) {
    let nodes = std::mem::take(&mut capture.nodes);
    for (at, node) in nodes.iter().enumerate() {
        match node {
            Node::Free { address } => {
                fusion.freed(*address);
                continue;
            }
            Node::Launch { kernel, push, .. } => {
                // Offered to the open chain, and then to a new one.
                if fusion.offer(at, kernel, &capture.bytes[push.clone()], push.start) {
                    continue;
                }
                close(capture, fusion, &nodes);
                if fusion.offer(at, kernel, &capture.bytes[push.clone()], push.start) {
                    continue;
                }
            }
            Node::Copy { .. } => close(capture, fusion, &nodes),
        }
        capture.nodes.push(node.clone());
    }
    close(capture, fusion, &nodes);
}

/// Ends the open chain: one launch in the place of its launches, or themselves where there is no
/// kernel for all.
fn close(capture: &mut Capturing, fusion: &mut Fusion, nodes: &[Node]) {
    if !fusion.is_open() {
        return;
    }
    if let Some(fused) = fusion.fused(&capture.bytes) {
        let push = capture.bytes.len()..capture.bytes.len() + fused.params.len();
        capture.bytes.extend_from_slice(&fused.params);
        let accesses = capture.note(&fused.reads, &fused.writes);
        let work = fused.reads.iter().chain(&fused.writes).map(|&range| work_of(range)).sum();
        capture.nodes.push(Node::Launch { kernel: fused.kernel, push, groups: fused.groups, work, accesses });
    } else {
        capture.nodes.extend(fusion.entries().map(|at| nodes[at].clone()));
    }
    fusion.close();
}
