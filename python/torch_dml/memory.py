"""Memory of the devices: allocated and free. All numbers are in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from torch_dml import engine
from torch_dml.backend import DEVICE
from torch_dml.device import DeviceLike, device_count, get_device_name, index_of, is_available
from torch_dml.sizes import size

# The last argument of set_per_process_memory_fraction, by device.
_fractions: dict[int, float] = {}


def memory_stats(device: DeviceLike = None) -> OrderedDict[str, Any]:
    """Return the allocator's statistics under the names that `torch.accelerator.memory_stats`
    uses.
    """
    if not is_available():
        return OrderedDict()
    stats: OrderedDict[str, Any] = torch.accelerator.memory_stats(index_of(device))
    return stats


def _stat(name: str, device: DeviceLike) -> int:
    return int(memory_stats(device).get(name, 0))


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the memory of all tensors."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the maximum memory of all tensors since the start or `reset_peak_memory_stats`."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the memory that the allocator has from the driver: tensors and cached memory."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the maximum memory that the allocator had since the start or
    `reset_peak_memory_stats`.
    """
    return _stat("reserved_bytes.all.peak", device)


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return free and total memory of the device, as reported by its driver."""
    return engine.memory_info(index_of(device))


def device_memory_used(device: DeviceLike = None) -> int:
    """Return the device's memory in use by all processes, as reported by its driver."""
    free, total = mem_get_info(device)
    return total - free


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """Return `memory_stats` as nested dictionaries: `["allocated_bytes"]["all"]["peak"]`."""
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device).items():
        *path, last = key.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_snapshot(device: DeviceLike = None) -> list[dict[str, Any]]:
    """Return the layout of memory: the segments from the driver, with their blocks. Keys are those
    of `torch.cuda`'s.
    """
    return engine.memory_snapshot(index_of(device))


def empty_cache() -> None:
    """Release the cached memory of the allocators of all devices to the driver."""
    for index in range(device_count()):
        engine.call("dml_empty_cache", index)


def host_memory_stats() -> OrderedDict[str, int]:
    """Return the statistics of pinned memory: `active` is that of tensors, `allocated` includes
    cached memory.
    """
    return OrderedDict(sorted(engine.host_memory_stats().items()))


def empty_host_cache() -> None:
    """Release cached pinned memory to the system."""
    engine.call("dml_host_empty_cache")


def reset_peak_host_memory_stats() -> None:
    """Reset the peaks of pinned memory to what is in use now."""
    engine.library().dml_host_reset_stats(1)


def reset_accumulated_host_memory_stats() -> None:
    """Reset the total counts of pinned memory to 0."""
    engine.library().dml_host_reset_stats(0)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Reset the peaks to what is in use now."""
    engine.call("dml_reset_peak_stats", index_of(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Reset the total counts of allocations and frees to 0."""
    torch.accelerator.reset_accumulated_memory_stats(index_of(device))


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let this process allocate at most `fraction` (0 to 1) of the device's memory."""
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"invalid fraction {fraction}: it must be from 0 to 1")
    index = index_of(device)
    engine.call("dml_set_memory_fraction", index, fraction)
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """Return the fraction from `set_per_process_memory_fraction`, 1.0 by default."""
    return _fractions.get(index_of(device), 1.0)


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Return a human-readable table of the memory statistics; `abbreviated` leaves out the less
    common ones.
    """
    index = index_of(device)
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    rows = [("Allocated", "allocated_bytes.all"), ("Reserved", "reserved_bytes.all")]
    if not abbreviated:
        rows += [("Active", "active_bytes.all"), ("Requested", "requested_bytes.all")]
    lines = [
        f"{DEVICE}:{index} {get_device_name(index)}: {size(free)} free of {size(total)}",
        f"{'':12}{'current':>12}{'peak':>12}{'allocated':>12}{'freed':>12}",
    ]
    for title, key in rows:
        figures = (stats.get(f"{key}.{part}") for part in ("current", "peak", "allocated", "freed"))
        cells = "".join(f"{'-' if figure is None else size(figure):>12}" for figure in figures)
        lines.append(f"{title:12}{cells}")
    lines.append(f"Out of memory: {stats.get('num_ooms', 0)}, retried: {stats.get('num_alloc_retries', 0)}")
    return "\n".join(lines)
