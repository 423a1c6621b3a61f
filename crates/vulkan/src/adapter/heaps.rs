//! The memory of an adapter.

use ash::vk;
use dml_gpu::AdapterKind;

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

/// Budget less usage of the counted heaps.
pub(super) fn free_bytes(
    kind: AdapterKind,
    memory: &vk::PhysicalDeviceMemoryProperties,
    budget: &vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>,
) -> u64 {
    counted_heaps(kind, memory).map(|(heap, _)| budget.heap_budget[heap].saturating_sub(budget.heap_usage[heap])).sum()
}

/// Bytes of the largest heap.
pub(super) fn largest(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    memory.memory_heaps_as_slice().iter().map(|heap| heap.size).max().unwrap_or(0)
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
