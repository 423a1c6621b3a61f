//! The memory barriers that there are.

use ash::vk;

/// A global memory barrier: what comes before it, and what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Barrier {
    pub(super) from: vk::PipelineStageFlags,
    pub(super) wrote: vk::AccessFlags,
    pub(super) to: vk::PipelineStageFlags,
    pub(super) uses: vk::AccessFlags,
}

/// The stages that commands have.
const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::TRANSFER.as_raw() | vk::PipelineStageFlags::COMPUTE_SHADER.as_raw(),
);
/// How they write, and read. Never `MEMORY_WRITE` or `MEMORY_READ`: they double the price of a barrier.
const WRITES: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::TRANSFER_WRITE.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw());
const READS: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::TRANSFER_READ.as_raw() | vk::AccessFlags::SHADER_READ.as_raw());

impl Barrier {
    /// Between commands: later ones may read and write what earlier ones wrote.
    pub(super) const BETWEEN_COMMANDS: Self = Self {
        from: STAGES,
        wrote: WRITES,
        to: STAGES,
        uses: vk::AccessFlags::from_raw(READS.as_raw() | WRITES.as_raw()),
    };

    /// Between commands and the host that reads what they wrote.
    pub(super) const BEFORE_HOST: Self =
        Self { from: STAGES, wrote: WRITES, to: vk::PipelineStageFlags::HOST, uses: vk::AccessFlags::HOST_READ };
}
