"""stable-baselines3: `device="auto"` is the device if it is a GPU, and its name is accepted
everywhere.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from torch_dml import device as devices
from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import put_everywhere

TESTED = ("2.6", "3")


def apply(module: ModuleType) -> None:
    """Let "auto" mean the device, if it is a GPU."""
    get_device = module.common.utils.get_device

    @functools.wraps(get_device)
    def chosen(device: Any = "auto") -> torch.device:
        return torch.device(DEVICE) if device == "auto" and _is_a_gpu() else get_device(device)

    put_everywhere(get_device, chosen)


def _is_a_gpu() -> bool:
    # "auto" is CUDA if available, whatever the network. A software adapter is the processor with a
    # driver in between: docs/guide/libraries.md has the figures.
    return devices.is_available() and not devices.get_device_properties(0).software
