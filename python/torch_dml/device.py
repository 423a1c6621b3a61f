"""Devices: how many, which, and what they are."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from torch_dml import engine, vulkan
from torch_dml.backend import DEVICE
from torch_dml.engine import DeviceProperties

# What names a device: an index, "dml:1", a torch.device, or None for the current one.
DeviceLike: TypeAlias = "int | str | torch.device | None"


def in_bad_fork() -> bool:
    """Return whether this process was forked after its parent had started Vulkan, which drivers do
    not survive.
    """
    return bool(engine.library().dml_forked())


def device_count() -> int:
    """Return the number of devices; 0 when there is no Vulkan loader or driver."""
    try:
        return engine.device_count()
    except RuntimeError:
        return 0


def is_available() -> bool:
    """Return whether there is a device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Return whether a device can be used in this process. The device starts at its first use, in
    no time.
    """
    return not in_bad_fork()


def init() -> None:
    """Make sure that there is a device; raise RuntimeError that says what to install when there is
    none.
    """
    if in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize dml in forked subprocess. To use dml with multiprocessing, you must use the 'spawn' "
            "start method"
        )
    if device_count() == 0:
        raise RuntimeError(vulkan.explain_no_device(engine.why_no_device()))


# torch calls it before it makes the first tensor, and takes the device for idle until it did.
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
    """Context manager that makes a tensor's device current; nothing changes for a tensor
    elsewhere.
    """

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


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Return whether one device reads the memory of another: none does, copies between them pass
    through the host.
    """
    index_of(device), index_of(peer_device)
    return False


def ipc_collect() -> None:
    """Do nothing, for there is nothing to collect: memory of a device is not shared between
    processes.
    """


def synchronize(device: DeviceLike = None) -> None:
    """Wait until the device has done all that was asked of it."""
    engine.call("dml_synchronize", index_of(device))
