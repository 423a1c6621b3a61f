"""What Dynamo and Inductor ask of a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._dynamo.device_interface import DeviceInterface
from torch._inductor.codegen.common import DeviceOpOverrides

from torch_dml import device


class Properties(NamedTuple):
    """What Inductor divides work by. It is the same for all adapters, so that sums are too."""

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
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return True


class DmlOpOverrides(DeviceOpOverrides):
    """Lines of the programs that Inductor writes."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(index): return 0"

    def set_device(self, device_idx: int) -> str:
        return f"torch.accelerator.set_device_index({device_idx})"

    def synchronize(self) -> str:
        return "torch.accelerator.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.get_device_module('dml').device({device_idx})"
