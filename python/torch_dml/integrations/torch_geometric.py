"""torch_geometric: `device("auto")` and `PrefetchLoader` find the device."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from torch_dml import device as devices
from torch_dml import module
from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import put, take_cuda_branch, when_imported

TESTED = ("2.6", "3")


def apply(package: ModuleType) -> None:
    """Let torch_geometric find the device on a machine without CUDA."""
    take_cuda_branch(package.device)
    when_imported("torch_geometric.loader.prefetch", _prefetch)


def _prefetch(prefetch: Any) -> None:
    initialise = prefetch.DeviceHelper.__init__

    @functools.wraps(initialise)
    def init(self: Any, device: Any = None) -> None:
        initialise(self, DEVICE if device is None and devices.is_available() else device)
        if self.device.type == DEVICE:  # which has streams and pinned memory, like CUDA
            self.is_gpu, self.module = True, module

    put(prefetch.DeviceHelper, "__init__", init)
