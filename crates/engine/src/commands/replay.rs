//! One submission's share of a graph, as a command.

use crate::backend::Recording;
use crate::commands::intervals::IntervalSet;

/// A recorded part of a graph: as many of its commands as are submitted at once, often all of them.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) recording: Recording,
    /// Launches and copies in the recording.
    pub(crate) launches: u32,
    /// Barriers in the recording, the one at its beginning included.
    pub(crate) barriers: u32,
    /// The operations that it does, as [`Launch::work`](crate::Launch::work) counts them.
    pub(crate) work: u64,
    /// Bytes that are read after the recording's last barrier.
    pub(crate) read_last: IntervalSet,
    /// Bytes that are written after the recording's last barrier.
    pub(crate) written_last: IntervalSet,
}
