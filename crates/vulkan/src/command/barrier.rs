//! The memory barriers that there are.

use ash::vk;

use crate::device::QueueKind;

/// A global memory barrier: what comes before it, and what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Barrier {
    pub(super) from: vk::PipelineStageFlags,
    pub(super) wrote: vk::AccessFlags,
    pub(super) to: vk::PipelineStageFlags,
    pub(super) uses: vk::AccessFlags,
}

impl Barrier {
    /// Between commands of one queue. Never `MEMORY_READ` or `MEMORY_WRITE`: they double the price of a barrier.
    #[inline]
    pub(super) fn between_commands(queue: QueueKind) -> Self {
        let (stages, wrote) = writes(queue);
        let reads = match queue {
            QueueKind::Transfer => vk::AccessFlags::TRANSFER_READ,
            QueueKind::Compute => vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::SHADER_READ,
        };
        Self { from: stages, wrote, to: stages, uses: reads | wrote }
    }

    /// Between commands and the host that reads what they wrote.
    #[inline]
    pub(super) fn before_host(queue: QueueKind) -> Self {
        let (from, wrote) = writes(queue);
        Self { from, wrote, to: vk::PipelineStageFlags::HOST, uses: vk::AccessFlags::HOST_READ }
    }
}

/// The stages of a queue, and how they write.
#[inline]
fn writes(queue: QueueKind) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    match queue {
        QueueKind::Transfer => (vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_WRITE),
        QueueKind::Compute => (
            vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::COMPUTE_SHADER,
            vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::SHADER_WRITE,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_queue_has_no_shader_stage() {
        for barrier in [Barrier::between_commands(QueueKind::Transfer), Barrier::before_host(QueueKind::Transfer)] {
            assert_eq!(barrier.from, vk::PipelineStageFlags::TRANSFER);
            assert!(
                !(barrier.wrote | barrier.uses)
                    .intersects(vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE)
            );
        }
    }

    #[test]
    fn barriers_name_no_general_access() {
        for queue in [QueueKind::Compute, QueueKind::Transfer] {
            let barrier = Barrier::between_commands(queue);
            let general = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
            assert!(!(barrier.wrote | barrier.uses).intersects(general));
            assert!(barrier.uses.contains(barrier.wrote), "later commands may write what earlier ones wrote");
        }
    }
}
