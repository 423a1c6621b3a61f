//! The choice of the queue family.

use ash::vk;

/// The chosen queue family. It computes and also copies, as every family with compute does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFamily {
    pub(crate) index: u32,
    /// Valid bits of a timestamp; 0 without timestamps.
    pub(crate) timestamp_bits: u32,
}

impl QueueFamily {
    /// A family with compute and no graphics, else any with compute. `None` for an adapter that
    /// cannot compute.
    pub(super) fn choose(families: &[vk::QueueFamilyProperties]) -> Option<Self> {
        let with = |avoid: vk::QueueFlags| {
            position(families, |flags| flags.contains(vk::QueueFlags::COMPUTE) && !flags.intersects(avoid))
        };
        with(vk::QueueFlags::GRAPHICS).or_else(|| with(vk::QueueFlags::empty()))
    }
}

fn position(families: &[vk::QueueFamilyProperties], accept: impl Fn(vk::QueueFlags) -> bool) -> Option<QueueFamily> {
    let index = families.iter().position(|f| f.queue_count > 0 && accept(f.queue_flags))?;
    Some(QueueFamily { index: u32::try_from(index).ok()?, timestamp_bits: families[index].timestamp_valid_bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: vk::QueueFlags = vk::QueueFlags::from_raw(
        vk::QueueFlags::GRAPHICS.as_raw() | vk::QueueFlags::COMPUTE.as_raw() | vk::QueueFlags::TRANSFER.as_raw(),
    );

    fn family(flags: vk::QueueFlags) -> vk::QueueFamilyProperties {
        vk::QueueFamilyProperties { queue_flags: flags, queue_count: 1, timestamp_valid_bits: 64, ..Default::default() }
    }

    fn chosen(families: &[vk::QueueFamilyProperties]) -> Option<u32> {
        QueueFamily::choose(families).map(|family| family.index)
    }

    #[test]
    fn compute_prefers_a_family_without_graphics() {
        let nvidia = [
            family(ALL),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::SPARSE_BINDING),
            family(vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::VIDEO_DECODE_KHR),
        ];
        assert_eq!(chosen(&nvidia), Some(2));
        assert_eq!(chosen(&[family(ALL)]), Some(0));
        // A family with compute need not advertise copies.
        assert_eq!(chosen(&[family(ALL), family(vk::QueueFlags::COMPUTE)]), Some(1));
        assert_eq!(chosen(&[family(vk::QueueFlags::TRANSFER), family(vk::QueueFlags::COMPUTE)]), Some(1));
    }

    #[test]
    fn a_family_that_only_copies_is_not_used() {
        assert_eq!(chosen(&[family(vk::QueueFlags::TRANSFER)]), None);
        assert_eq!(chosen(&[family(vk::QueueFlags::TRANSFER), family(ALL)]), Some(1));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_family_has_queues_and_its_own_timestamps() {
        let empty = vk::QueueFamilyProperties { queue_count: 0, ..family(vk::QueueFlags::COMPUTE) };
        let untimed = vk::QueueFamilyProperties { timestamp_valid_bits: 0, ..family(vk::QueueFlags::COMPUTE) };
        assert_eq!(
            QueueFamily::choose(&[empty, family(ALL), untimed]).map(|f| (f.index, f.timestamp_bits)),
            Some((2, 0))
        );
        assert_eq!(QueueFamily::choose(&[empty, family(ALL)]).map(|f| (f.index, f.timestamp_bits)), Some((1, 64)));
    }
}
