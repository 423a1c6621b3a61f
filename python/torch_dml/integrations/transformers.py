"""transformers: Trainer, `pipeline()`, `device=0` and `device_map="auto"` on the device."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from torch_dml import device
from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import put, take_cuda_branch, when_imported

TESTED = ("5.23", "6")

_AVAILABLE = {f"is_torch_{DEVICE}_available": device.is_available}


def apply(module: ModuleType) -> None:
    """Let transformers find the device on a machine without CUDA. Its modules are imported when
    they are used.
    """
    when_imported("transformers.utils", _utils)
    when_imported("transformers.utils.import_utils", _import_utils)
    when_imported("transformers.training_args", _training_args)
    when_imported("transformers.trainer", _trainer)
    when_imported("transformers.trainer_utils", _trainer_utils)
    when_imported("transformers.pipelines.base", _pipelines)
    when_imported("transformers.integrations.accelerate", _device_map)
    when_imported("transformers.modeling_utils", _modeling_utils)
    when_imported("transformers.generation.utils", _generation)


def _utils(module: Any) -> None:
    take_cuda_branch(module.get_available_devices, **_AVAILABLE)


def _import_utils(module: Any) -> None:
    take_cuda_branch(module.is_torch_bf16_gpu_available)
    take_cuda_branch(module.is_torch_bf16_available_on_device)


def _training_args(module: Any) -> None:
    devices = vars(module.TrainingArguments)["_setup_devices"]
    take_cuda_branch(devices)
    put(devices, "func", _one_device(devices.func))


def _one_device(setup_devices: Any) -> Any:
    """Train on one device: Trainer uses nn.DataParallel for several, which copies through the host
    here.

    If accelerate was not told of the device, this is the CPU, to which accelerate moves the model.
    """

    @functools.wraps(setup_devices)
    def one_device(self: Any) -> Any:
        chosen = setup_devices(self)
        if chosen.type == DEVICE:
            told = self.distributed_state.device.type == DEVICE
            chosen, self._n_gpu = (chosen, 1) if told else (self.distributed_state.device, 0)
        return chosen

    return one_device


def _trainer(module: Any) -> None:
    take_cuda_branch(module.Trainer._save_rng_state)
    take_cuda_branch(module.Trainer._load_rng_state)


def _trainer_utils(module: Any) -> None:
    take_cuda_branch(module.TrainerMemoryTracker.__init__, **_AVAILABLE)
    take_cuda_branch(module.TrainerMemoryTracker.start)
    take_cuda_branch(module.TrainerMemoryTracker.stop)


def _pipelines(module: Any) -> None:
    take_cuda_branch(module.Pipeline.__init__, **_AVAILABLE)
    take_cuda_branch(module.Pipeline.device_placement)


def _device_map(module: Any) -> None:
    take_cuda_branch(module.get_max_memory)


def _modeling_utils(module: Any) -> None:
    take_cuda_branch(module.caching_allocator_warmup)  # no more than is free


def _generation(module: Any) -> None:
    """Let `generate` learn one step later whether the text has ended, as on Apple's GPUs, so that
    the host never waits for it.
    """
    check = module.DeferredStopCheck
    take_cuda_branch(check.__init__)  # pinned memory
    put(check, "is_supported", staticmethod(_as_mps(check.is_supported)))


def _as_mps(is_supported: Any) -> Any:
    @functools.wraps(is_supported)
    def as_mps(device: torch.device, *arguments: Any, **keywords: Any) -> Any:
        return is_supported(torch.device("mps") if device.type == DEVICE else device, *arguments, **keywords)

    return as_mps
