"""accelerate: `Accelerator()` on the device, with fp16 and bf16, its random generators in
checkpoints, device maps.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import torch

from torch_dml import device
from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import has_taken_cuda_branch, put, put_everywhere, take_cuda_branch

TESTED = ("1.10", "2")


def apply(module: ModuleType) -> None:
    """Let accelerate find the device on a machine without CUDA."""
    accelerator, checkpointing, modeling = module.accelerator, module.checkpointing, module.utils.modeling
    available = {f"is_{DEVICE}_available": device.is_available}
    state = module.state.PartialState
    take_cuda_branch(state.default_device)
    put(state, "default_device", property(_as_trainer(state.default_device.fget)))
    take_cuda_branch(accelerator.Accelerator.__init__)  # the devices that fp16 is accepted for
    take_cuda_branch(modeling.get_grad_scaler)
    take_cuda_branch(checkpointing.save_accelerator_state, **available)
    take_cuda_branch(checkpointing.load_accelerator_state, **available)
    take_cuda_branch(module.utils.memory.clear_device_cache, **available)
    take_cuda_branch(modeling.get_balanced_memory)
    take_cuda_branch(modeling.get_max_memory)
    put_everywhere(modeling.get_max_memory, _of_devices_alike(modeling.get_max_memory))


def _as_trainer(default_device: Any) -> Any:
    """Leave the device to transformers' Trainer unless it was told of ours: otherwise it would get
    models on another device.
    """

    @functools.wraps(default_device)
    def as_trainer(self: Any) -> torch.device:
        arguments = sys.modules.get("transformers.training_args")
        setup = arguments and vars(arguments.TrainingArguments)["_setup_devices"]
        chosen: torch.device = default_device(self)
        untold = setup is not None and not has_taken_cuda_branch(setup)
        return torch.device("cpu") if untold and chosen.type == DEVICE else chosen

    return as_trainer


def _of_devices_alike(get_max_memory: Any) -> Any:
    """Exclude devices of another kind than the first: a model that is split evenly would wait for
    an integrated GPU.
    """

    @functools.wraps(get_max_memory)
    def of_devices_alike(max_memory: dict[Any, Any] | None = None) -> dict[Any, Any]:
        found: dict[Any, Any] = get_max_memory(max_memory)
        if max_memory is not None:
            return found
        kinds = {index: device.get_device_properties(index).kind for index in found if isinstance(index, int)}
        return {key: found[key] for key in found if kinds.get(key) == kinds.get(0) or key not in kinds}

    return of_devices_alike
