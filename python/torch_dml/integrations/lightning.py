"""lightning and fabric: an accelerator and a strategy "dml", which "auto" and "gpu" select; all
precisions.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from torch_dml import device as devices
from torch_dml import memory
from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import put_everywhere, remember, take_cuda_branch, when_imported

TESTED = ("2.6", "3")


def apply(module: ModuleType) -> None:
    """Register the accelerator and the strategy with fabric, with the Trainer, or, for `lightning`,
    with both.
    """
    package = module.__name__
    together = package == "lightning"
    if together or package == "lightning_fabric":
        fabric = "lightning.fabric" if together else package
        when_imported(f"{fabric}.connector", _fabric)
        when_imported(f"{fabric}.utilities.device_parser", _device_parser)
        when_imported(f"{fabric}.utilities.seed", _seed)
    if together or package == "pytorch_lightning":
        trainer = "lightning.pytorch" if together else package
        when_imported(f"{trainer}.trainer.connectors.accelerator_connector", _trainer)
        when_imported(f"{trainer}.trainer.setup", _log)
        when_imported(f"{trainer}.utilities.memory", _memory)


class _Accelerator:
    """The interface of accelerators for fabric and the Trainer."""

    def setup_device(self, device: torch.device) -> None:
        """Make a device current."""
        devices.set_device(device)

    def teardown(self) -> None:
        """Release cached memory."""
        memory.empty_cache()

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Return the statistics of a device's memory."""
        return memory.memory_stats(device)

    @staticmethod
    def parse_devices(wanted: int | str | list[int]) -> list[int]:
        """Return the indices that `devices=` means: 2 and "2" are the first two, -1 all, [1] and
        "1," the second.
        """
        if isinstance(wanted, str):
            numbers = [int(part) for part in wanted.split(",") if part.strip()]
            wanted = numbers if "," in wanted else numbers[0]
        count = devices.device_count()
        if isinstance(wanted, int):
            wanted = list(range(count if wanted == -1 else wanted))
        if not wanted or len(set(wanted)) != len(wanted) or not set(wanted) <= set(range(count)):
            raise ValueError(f"devices={wanted} are not devices of this machine: there are {count} {DEVICE} devices")
        return list(wanted)

    @staticmethod
    def get_parallel_devices(indices: list[int]) -> list[torch.device]:
        """Return the devices of these indices."""
        return [torch.device(DEVICE, index) for index in indices]

    @staticmethod
    def auto_device_count() -> int:
        """Return 1: several devices need several processes and communication between them, which
        there is not yet.
        """
        return 1

    @staticmethod
    def is_available() -> bool:
        """Return whether there is a device."""
        return devices.is_available()

    @staticmethod
    def name() -> str:
        """Return the name for `accelerator=`."""
        return DEVICE


class _Strategy:
    """The library's single-device strategy, on the device that `devices=` selects."""

    strategy_name = DEVICE

    def __init__(self, device: Any = DEVICE, **options: Any) -> None:
        super().__init__(device=device, **options)  # type: ignore[call-arg]

    @property
    def parallel_devices(self) -> list[torch.device]:
        """Return nothing: the connector then reports which devices it has chosen."""
        return []

    @parallel_devices.setter
    def parallel_devices(self, chosen: list[torch.device]) -> None:
        if len(chosen) != 1:
            raise ValueError(f"strategy={DEVICE!r} runs on one device, not on {chosen}")
        self._root_device = chosen[0]


@functools.cache
def _accelerator(base: type) -> Any:
    return type("DMLAccelerator", (_Accelerator, base), {"__module__": __name__})


def _register(connector: Any, accelerators: dict[str, Any], strategies: dict[str, Any]) -> Any:
    accelerator = _accelerator(connector.CUDAAccelerator.__base__)
    strategy = type("DMLStrategy", (_Strategy, connector.SingleDeviceStrategy), {"__module__": __name__})
    registries: list[tuple[Any, type]] = [(accelerators, accelerator), (strategies, strategy)]
    for registry, cls in registries:
        registry.register(DEVICE, cls, description=cls.__name__)
        remember(functools.partial(registry.remove, DEVICE))
    return accelerator


def _choose(connector: Any, accelerator: Any) -> None:
    take_cuda_branch(connector._choose_gpu_accelerator_backend, DMLAccelerator=accelerator)
    take_cuda_branch(connector._choose_strategy, DMLAccelerator=accelerator)
    take_cuda_branch(connector._check_and_init_precision, DMLAccelerator=accelerator)


def _fabric(module: Any) -> None:
    accelerator = _register(module, module.ACCELERATOR_REGISTRY, module.STRATEGY_REGISTRY)
    _choose(module._Connector, accelerator)
    take_cuda_branch(module._Connector._choose_auto_accelerator, DMLAccelerator=accelerator)


def _trainer(module: Any) -> None:
    accelerator = _register(module, module.AcceleratorRegistry, module.StrategyRegistry)
    _choose(module._AcceleratorConnector, accelerator)


def _device_parser(module: Any) -> None:
    select = module._select_auto_accelerator

    @functools.wraps(select)
    def select_auto_accelerator() -> str:
        found: str = select()
        return DEVICE if found == "cpu" and devices.is_available() else found

    put_everywhere(select, select_auto_accelerator)


def _seed(module: Any) -> None:
    take_cuda_branch(module._collect_rng_states)
    take_cuda_branch(module._set_rng_states)


def _log(module: Any) -> None:
    take_cuda_branch(module._log_device_info, DMLAccelerator=_accelerator(module.CUDAAccelerator.__base__))


def _memory(module: Any) -> None:
    is_oom_error = module.is_oom_error

    @functools.wraps(is_oom_error)
    def is_out_of_memory(exception: BaseException) -> bool:
        return isinstance(exception, torch.OutOfMemoryError) or is_oom_error(exception)

    put_everywhere(is_oom_error, is_out_of_memory)
    take_cuda_branch(module.garbage_collection_cuda)
