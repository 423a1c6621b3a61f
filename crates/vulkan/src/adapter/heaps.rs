//! How much memory an adapter has.

use ash::vk;

use super::info::AdapterKind;
use super::physical::AdapterShared;

/// The heaps that count as an adapter's memory.
fn counted_heaps(kind: AdapterKind, memory: &vk::PhysicalDeviceMemoryProperties) -> impl Iterator<Item = (usize, u64)> {
    let all = kind == AdapterKind::Integrated;
    memory
        .memory_heaps_as_slice()
        .iter()
        .enumerate()
        .filter(move |(_, heap)| all || heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .map(|(index, heap)| (index, heap.size))
}

/// Bytes of the counted heaps.
pub(super) fn total_bytes(kind: AdapterKind, memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    counted_heaps(kind, memory).map(|(_, bytes)| bytes).sum()
}

/// Budget less usage of the counted heaps, or their size where the driver has no budget.
pub(crate) fn free_bytes(adapter: &AdapterShared) -> u64 {
    if !adapter.info.capabilities.memory_budget {
        return adapter.info.memory_total;
    }
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the adapter has the extension that defines the chained structure.
    unsafe {
        adapter.instance.raw.get_physical_device_memory_properties2(adapter.raw, &mut all);
    }
    counted_heaps(adapter.info.kind, &adapter.memory)
        .map(|(heap, _)| budget.heap_budget[heap].saturating_sub(budget.heap_usage[heap]))
        .sum()
}

/// The largest segment that is worth trying to allocate.
pub(crate) fn largest_segment(adapter: &AdapterShared) -> u64 {
    let limit = if adapter.info.kind == AdapterKind::Software {
        adapter.info.capabilities.max_allocation
    } else {
        // Drivers vouch for some 4 GiB and give more: a tensor may well be larger.
        adapter.info.capabilities.max_buffer
    };
    let heaps = adapter.memory.memory_heaps_as_slice();
    limit.min(heaps.iter().map(|heap| heap.size).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integrated_gpu_counts_both_heaps() {
        let mut memory = vk::PhysicalDeviceMemoryProperties { memory_heap_count: 2, ..Default::default() };
        memory.memory_heaps[0] = vk::MemoryHeap { size: 6 << 30, flags: vk::MemoryHeapFlags::empty() };
        memory.memory_heaps[1] = vk::MemoryHeap { size: 2 << 30, flags: vk::MemoryHeapFlags::DEVICE_LOCAL };
        assert_eq!(total_bytes(AdapterKind::Integrated, &memory), 8 << 30);
        assert_eq!(total_bytes(AdapterKind::Discrete, &memory), 2 << 30);
    }
}
