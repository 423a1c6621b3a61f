//! What a device's queue counts.

/// What a device's queue did so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Commands enqueued: launches and copies.
    pub commands: u64,
    /// Launches that ran as part of a fused kernel.
    pub fused_launches: u64,
    /// Runs of fused kernels.
    pub fused_kernels: u64,
    /// Barriers recorded.
    pub barriers: u64,
    /// Submits.
    pub submits: u64,
    /// The most work that one of them did, as [`Launch::work`](crate::Launch::work) counts it.
    pub most_work: u64,
    /// Times the host waited for the device.
    pub waits: u64,
}
