"""DLPack. torch compares a tensor's device type with the literal "privateuse1", and therefore
refuses every renamed backend.
"""

from __future__ import annotations

import enum
import functools

import torch
from torch.overrides import has_torch_function_unary
from torch.utils.dlpack import DLDeviceType

from torch_dml.backend import DEVICE


def install() -> None:
    """Let `Tensor.__dlpack_device__` support the device: it is DLPack's kDLExtDev, as in torch's
    C++.
    """
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def dlpack_device(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if self.device.type == DEVICE and not has_torch_function_unary(self):
            return DLDeviceType.kDLExtDev, self.device.index
        return original(self)

    torch.Tensor.__dlpack_device__ = dlpack_device  # type: ignore[method-assign]
