"""Drop-in for Microsoft's torch-directml: the same functions, on the device "dml" of torch-dml."""

from __future__ import annotations

import torch
import torch_dml
from torch_dml import device as _device
from torch_dml import engine

torch_dml.load()

__all__ = [
    "default_device",
    "device",
    "device_count",
    "device_name",
    "disable_tiled_resources",
    "gpu_memory",
    "has_float64_support",
    "is_available",
]


def is_available() -> bool:
    """Return whether there is a device."""
    return _device.is_available()


def device_count() -> int:
    """Return the number of devices: discrete GPUs first, then integrated, then software."""
    return _device.device_count()


def default_device() -> int:
    """Return the index of the device that `device()` returns."""
    return 0


def device(device_id: int | None = None) -> torch.device:
    """Return the device with an index; without one the default device."""
    index = default_device() if device_id is None else device_id
    _check(index)
    return torch.device("dml", index)


def device_name(device_id: int) -> str:
    """Return a device's name, "" for an index that does not exist."""
    if not 0 <= device_id < device_count():
        return ""
    return engine.device_properties(device_id).name


def has_float64_support(device_id: int | None = None) -> bool:
    """Return whether a device supports float64."""
    index = default_device() if device_id is None else device_id
    _check(index)
    return engine.device_properties(index).f64


def gpu_memory(device_id: int | None = None, mb_per_tile: int = 1) -> list[float]:
    """Return how full the device's memory is, in the format of the original: one number from 0 to 1
    per tile.

    A tile is `mb_per_tile` MiB and the list covers the whole memory, so that
    `sum(gpu_memory(i)) * mb_per_tile` is what this process has in use, in MiB.
    """
    index = default_device() if device_id is None else device_id
    _check(index)
    if mb_per_tile < 1:
        raise ValueError(f"mb_per_tile must be at least 1, but got {mb_per_tile}")
    tile = mb_per_tile << 20
    total = engine.device_properties(index).total_memory
    used = torch.dml.memory_allocated(index)  # type: ignore[attr-defined]
    full, part = divmod(used, tile)
    tiles = [1.0] * full + ([part / tile] if part else [])
    return tiles + [0.0] * (-(-total // tile) - len(tiles))


def disable_tiled_resources(disable: bool) -> None:
    """Do nothing: memory is never tiled here. Exists for scripts that call it."""


def _check(index: int) -> None:
    count = device_count()
    if not 0 <= index < count:
        raise Exception(f"Invalid device_id argument supplied {index}. device_id must be in range [0, {count}).")
