//! Which queue families are used: one for compute, and one that only copies where there is one.

use ash::vk;

/// A queue family that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFamily {
    pub(crate) index: u32,
    /// Valid bits of a timestamp; 0 without timestamps.
    pub(crate) timestamp_bits: u32,
}

/// The queue families of an adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueFamilies {
    pub(crate) compute: QueueFamily,
    pub(crate) transfer: Option<QueueFamily>,
}

impl QueueFamilies {
    /// `None` for an adapter that cannot compute.
    pub(super) fn choose(families: &[vk::QueueFamilyProperties]) -> Option<Self> {
        compute_family(families).map(|compute| Self { compute, transfer: transfer_family(families) })
    }

    /// The indices of all of them, each once.
    pub(crate) fn indices(&self) -> Vec<u32> {
        std::iter::once(self.compute).chain(self.transfer).map(|family| family.index).collect()
    }
}

/// A family with compute and no graphics, else any with compute.
fn compute_family(families: &[vk::QueueFamilyProperties]) -> Option<QueueFamily> {
    let with = |avoid: vk::QueueFlags| {
        position(families, |flags| flags.contains(vk::QueueFlags::COMPUTE) && !flags.intersects(avoid))
    };
    with(vk::QueueFlags::GRAPHICS).or_else(|| with(vk::QueueFlags::empty()))
}

/// A family that copies and does neither compute nor graphics: a copy engine.
fn transfer_family(families: &[vk::QueueFamilyProperties]) -> Option<QueueFamily> {
    position(families, |flags| {
        flags.contains(vk::QueueFlags::TRANSFER)
            && !flags.intersects(
                vk::QueueFlags::COMPUTE
                    | vk::QueueFlags::GRAPHICS
                    | vk::QueueFlags::VIDEO_DECODE_KHR
                    | vk::QueueFlags::VIDEO_ENCODE_KHR
                    | vk::QueueFlags::OPTICAL_FLOW_NV,
            )
    })
}

fn position(families: &[vk::QueueFamilyProperties], accept: impl Fn(vk::QueueFlags) -> bool) -> Option<QueueFamily> {
    let index = families.iter().position(|f| f.queue_count > 0 && accept(f.queue_flags))?;
    Some(QueueFamily { index: u32::try_from(index).ok()?, timestamp_bits: families[index].timestamp_valid_bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_prefers_a_family_without_graphics() {
        let family = |flags| vk::QueueFamilyProperties { queue_flags: flags, queue_count: 1, ..Default::default() };
        let all = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let nvidia = [
            family(all),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::SPARSE_BINDING),
            family(vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::VIDEO_DECODE_KHR),
        ];
        assert_eq!(QueueFamilies::choose(&nvidia).map(|f| f.indices()), Some(vec![2, 1]));
        let one = [family(all)];
        assert_eq!(QueueFamilies::choose(&one).map(|f| f.indices()), Some(vec![0]));
        assert!(QueueFamilies::choose(&[family(vk::QueueFlags::TRANSFER)]).is_none());
    }
}
