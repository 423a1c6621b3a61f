//! The memory barriers that commands use.

use ash::vk;

/// A global memory barrier: the commands before it, and the commands that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Barrier {
    pub(super) from: vk::PipelineStageFlags,
    pub(super) wrote: vk::AccessFlags,
    pub(super) to: vk::PipelineStageFlags,
    pub(super) uses: vk::AccessFlags,
}

/// The pipeline stages of commands.
const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::TRANSFER.as_raw() | vk::PipelineStageFlags::COMPUTE_SHADER.as_raw(),
);
/// The access types of commands. `MEMORY_WRITE` and `MEMORY_READ` are never used: they double the
/// cost of a barrier.
const WRITES: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::TRANSFER_WRITE.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw());
const READS: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::TRANSFER_READ.as_raw() | vk::AccessFlags::SHADER_READ.as_raw());

impl Barrier {
    /// Between commands: later commands may read and write the results of earlier ones.
    pub(super) const BETWEEN_COMMANDS: Self = Self {
        from: STAGES,
        wrote: WRITES,
        to: STAGES,
        uses: vk::AccessFlags::from_raw(READS.as_raw() | WRITES.as_raw()),
    };

    /// Between commands and a host that reads their results.
    pub(super) const BEFORE_HOST: Self =
        Self { from: STAGES, wrote: WRITES, to: vk::PipelineStageFlags::HOST, uses: vk::AccessFlags::HOST_READ };
}
