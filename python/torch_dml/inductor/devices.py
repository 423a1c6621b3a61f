"""What Dynamo and Inductor ask of a device. Dynamo imports this, and long before a graph is
compiled.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch._dynamo.device_interface import DeviceInterface

from torch_dml import device
from torch_dml.backend import DEVICE


class Properties(NamedTuple):
    """What Inductor divides work by. It is the same for all adapters, so that sums are too."""

    # CUDA's compute capability, of which Dynamo asks whether Triton has it.
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 80
    max_threads_per_multi_processor: int = 1024
    warp_size: int = 32


PROPERTIES = Properties()


class DmlInterface(DeviceInterface):
    """The device's runtime."""

    Event = torch.Event  # type: ignore[assignment]
    Stream = torch.Stream  # type: ignore[assignment]

    class Worker:
        """What processes that compile ask: nothing is compiled by them."""

        @staticmethod
        def set_device(device: int) -> None:
            torch.accelerator.set_device_index(device)

        @staticmethod
        def current_device() -> int:
            return torch.accelerator.current_device_index()

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return PROPERTIES

    @staticmethod
    def current_device() -> int:
        return torch.accelerator.current_device_index()

    @staticmethod
    def set_device(device: Any) -> None:
        torch.accelerator.set_device_index(device)

    @staticmethod
    def device_count() -> int:
        return torch.accelerator.device_count()

    @staticmethod
    def is_available() -> bool:
        return device.is_available()

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return 0

    @staticmethod
    def synchronize(device: Any = None) -> None:
        torch.accelerator.synchronize(device)

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return ""

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return False

    @staticmethod
    def is_gpu() -> bool:
        return True

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return True


def register_interface(module: ModuleType) -> None:
    """Register the interface with Dynamo's module of them, once that has registered its own: one of
    these may be for the same device's name.
    """
    register_all = module.init_device_reg

    @functools.wraps(register_all)
    def init_device_reg() -> None:
        register_all()
        for name in {DEVICE, *module.device_interfaces}:
            if name.split(":")[0] == DEVICE:
                module.register_interface_for_device(name, DmlInterface)

    module.init_device_reg = init_device_reg  # type: ignore[attr-defined]
    if module._device_initialized:
        init_device_reg()
