"""Devices: their number, the current one, and their properties."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from torch_dml import engine, vulkan
from torch_dml.backend import DEVICE
from torch_dml.engine import DeviceProperties

# A device argument: an index, "dml:1", a torch.device, or None for the current one.
DeviceLike: TypeAlias = "int | str | torch.device | None"


def in_bad_fork() -> bool:
    """Return whether this process was forked after its parent had started Vulkan, which drivers do
    not support.
    """
    return bool(engine.library().dml_forked())


def device_count() -> int:
    """Return the number of devices; 0 if there is no Vulkan loader or driver."""
    try:
        return engine.device_count()
    except RuntimeError:
        return 0


def is_available() -> bool:
    """Return whether there is a device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Return whether a device can be used in this process. The device starts at its first use,
    which takes no time.
    """
    return not in_bad_fork()


def init() -> None:
    """Make sure that there is a device; if not, raise a RuntimeError that says what to install."""
    if in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize dml in forked subprocess. To use dml with multiprocessing, you must use the 'spawn' "
            "start method"
        )
    if device_count() == 0:
        raise RuntimeError(vulkan.explain_no_device(engine.why_no_device()))


# torch calls it before it creates the first tensor, and considers the device idle until then.
_lazy_init = init


def index_of(device: DeviceLike) -> int:
    """Return the index of `device`; the current device's if it has no index.

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
        """`device` is an index, a name or a torch.device."""
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
        """Make the previously current device current again."""
        if self.idx >= 0 and self.prev_idx != self.idx:
            set_device(self.prev_idx)


class device_of(device):
    """Context manager that makes a tensor's device current; a tensor on another type of device
    changes nothing.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        """`tensor` is any tensor."""
        super().__init__(tensor.get_device() if tensor.device.type == DEVICE else -1)


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Return the properties of a device: name, vendor, driver, memory, supported types."""
    return engine.device_properties(index_of(device))


def get_device_name(device: DeviceLike = None) -> str:
    """Return the driver's name of the device."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """Return the version of the Vulkan API that the device supports, (1, 3) for 1.3."""
    major, minor, *_ = (*get_device_properties(device).api_version.split("."), "0", "0")
    return int(major), int(minor)


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Return whether one device can read the memory of another: always False, since copies between
    devices pass through the host.
    """
    index_of(device), index_of(peer_device)
    return False


def ipc_collect() -> None:
    """Do nothing: memory of a device is not shared between processes, so there is nothing to
    collect.
    """


def synchronize(device: DeviceLike = None) -> None:
    """Wait until the device has finished all work."""
    engine.call("dml_synchronize", index_of(device))
