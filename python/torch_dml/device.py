"""Devices: how many, which, and what they are."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import torch

from torch_dml import engine, vulkan
from torch_dml.engine import DeviceProperties
from torch_dml.loader import DEVICE

# What names a device: an index, "dml:1", a torch.device, or None for the current one.
DeviceLike: TypeAlias = "int | str | torch.device | None"

_used = False  # whether this process asked for a device
_forked = False  # whether that happened in the parent, before a fork
_count = 0  # the devices that were found last


def _mark_forked() -> None:
    global _forked
    _forked = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)


def in_bad_fork() -> bool:
    """Return whether this process was forked after its parent had used a device, which drivers do not survive."""
    return _forked


def device_count() -> int:
    """Return the number of devices; 0 when there is no Vulkan loader or driver."""
    global _count
    if _forked:
        return _count
    try:
        _count = engine.device_count()
    except RuntimeError:
        return 0
    return _count


def is_available() -> bool:
    """Return whether there is a device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Return whether a device can be used in this process. The device starts at its first use, in no time."""
    return not _forked


def init() -> None:
    """Make sure that there is a device; raise RuntimeError that says what to install when there is none."""
    global _used
    if _forked:
        raise RuntimeError(
            'Cannot use the device "dml" in a forked process: use the "spawn" start method of multiprocessing'
        )
    if device_count() == 0:
        raise RuntimeError(vulkan.explain_no_device())
    _used = True


_lazy_init = init


def index_of(device: DeviceLike) -> int:
    """Return the index that `device` names; the current device's when it names none.

    Raises ValueError for a device of another type, RuntimeError for an index that does not exist.
    """
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != DEVICE:
            raise ValueError(f"expected a {DEVICE} device, but got {device}")
        device = device.index
    if device is None:
        return current_device()
    index = int(device)
    if not 0 <= index < device_count():
        init()
        raise RuntimeError(f"invalid device {DEVICE}:{index}: there are {device_count()}")
    return index


def current_device() -> int:
    """Return the index of the current device."""
    init()
    return torch.accelerator.current_device_index()


def set_device(device: DeviceLike) -> None:
    """Make a device current for this thread. An index below 0 changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    torch.accelerator.set_device_index(index_of(device))


class device:
    """Context manager that makes a device current. An index below 0, or None, changes nothing."""

    def __init__(self, device: DeviceLike) -> None:
        """Take an index, a name or a torch.device."""
        nothing = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if nothing else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        """Make the device current."""
        if self.idx >= 0:
            self.prev_idx = current_device()
            if self.prev_idx != self.idx:
                set_device(self.idx)

    def __exit__(self, *_: Any) -> None:
        """Make the device that was current before current again."""
        if self.idx >= 0 and self.prev_idx != self.idx:
            set_device(self.prev_idx)


class device_of(device):
    """Context manager that makes a tensor's device current; nothing changes for a tensor elsewhere."""

    def __init__(self, tensor: torch.Tensor) -> None:
        """Take any tensor."""
        super().__init__(tensor.get_device() if tensor.device.type == DEVICE else -1)


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Return what is known of a device: name, vendor, driver, memory, supported types."""
    return engine.device_properties(index_of(device))


def get_device_name(device: DeviceLike = None) -> str:
    """Return the name that the driver gives the device."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """Return the version of the Vulkan API that the device offers, (1, 3) for 1.3."""
    major, minor, *_ = (*get_device_properties(device).api_version.split("."), "0", "0")
    return int(major), int(minor)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until the device has done all that was asked of it."""
    engine.call("dml_synchronize", index_of(device))
