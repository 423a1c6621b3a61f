"""Memory of the devices: what is allocated, what is free. All figures in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from torch_dml import engine
from torch_dml.device import DeviceLike, get_device_name, index_of, is_available
from torch_dml.sizes import size


def memory_stats(device: DeviceLike = None) -> OrderedDict[str, Any]:
    """Return the allocator's statistics under the names that `torch.accelerator.memory_stats` uses."""
    if not is_available():
        return OrderedDict()
    stats: OrderedDict[str, Any] = torch.accelerator.memory_stats(index_of(device))
    return stats


def _stat(name: str, device: DeviceLike) -> int:
    return int(memory_stats(device).get(name, 0))


def memory_allocated(device: DeviceLike = None) -> int:
    """Return what tensors occupy."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the most that tensors occupied since the start or `reset_peak_memory_stats`."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device: DeviceLike = None) -> int:
    """Return what the allocator holds of the driver: tensors and what is kept for reuse."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the most that the allocator held since the start or `reset_peak_memory_stats`."""
    return _stat("reserved_bytes.all.peak", device)


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return free and total memory of the device, as its driver tells."""
    return engine.memory_info(index_of(device))


def empty_cache() -> None:
    """Give back to the driver what the allocators of all devices keep for reuse."""
    for index in range(engine.device_count() if is_available() else 0):
        engine.call("dml_empty_cache", index)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks start again from what is in use now."""
    engine.call("dml_reset_peak_stats", index_of(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Set the counts of all allocations and frees so far to 0."""
    torch.accelerator.reset_accumulated_memory_stats(index_of(device))


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let this process allocate at most `fraction` (0 to 1) of the device's memory."""
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"invalid fraction {fraction}: it must be from 0 to 1")
    engine.call("dml_set_memory_fraction", index_of(device), fraction)


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Return a table of the memory figures for a person; `abbreviated` leaves out the less asked ones."""
    index = index_of(device)
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    rows = [("Allocated", "allocated_bytes.all"), ("Reserved", "reserved_bytes.all")]
    if not abbreviated:
        rows += [("Active", "active_bytes.all"), ("Requested", "requested_bytes.all")]
    lines = [
        f"dml:{index} {get_device_name(index)}: {size(free)} free of {size(total)}",
        f"{'':12}{'current':>12}{'peak':>12}{'allocated':>12}{'freed':>12}",
    ]
    for title, key in rows:
        figures = (stats.get(f"{key}.{part}") for part in ("current", "peak", "allocated", "freed"))
        cells = "".join(f"{'-' if figure is None else size(figure):>12}" for figure in figures)
        lines.append(f"{title:12}{cells}")
    lines.append(f"Out of memory: {stats.get('num_ooms', 0)}, retried: {stats.get('num_alloc_retries', 0)}")
    return "\n".join(lines)
