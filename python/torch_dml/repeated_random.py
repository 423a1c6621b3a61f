"""Random operators that a compiled graph computes again in its backward pass, with the same
numbers: activation checkpointing with dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch._C import DispatchKey

from torch_dml import random
from torch_dml.backend import DEVICE


def install(module: ModuleType) -> None:
    """Add the device to torch's operators that save and set the generator's state."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, track_tensor_tree
    from torch.utils._pytree import tree_map

    save, repeat = module.run_and_save_rng_state, module.run_with_rng_state

    def saved(operator: Any, *args: Any, **kwargs: Any) -> Any:
        return random.get_rng_state(_device(args)), operator(*args, **kwargs)

    def repeated(state: torch.Tensor, operator: Any, *args: Any, **kwargs: Any) -> Any:
        device = _device(args)
        current = random.get_rng_state(device)
        random.set_rng_state(state, device)
        try:
            return operator(*args, **kwargs)
        finally:
            random.set_rng_state(current, device)

    def saved_in_theory(mode: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        with mode:
            return saved(operator, *args, **kwargs)

    def traced(mode: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        result = saved_in_theory(torch._guards.detect_fake_mode(args), operator, *args, **kwargs)
        unwrapped = tree_map(mode.tracer.unwrap_proxy, ((operator, *args), kwargs))
        proxy = mode.tracer.create_proxy("call_function", save, *unwrapped)
        return track_tensor_tree(result, proxy, constant=None, tracer=mode.tracer)

    _add(save.py_kernels, DispatchKey.BackendSelect, saved)
    _add(repeat.py_kernels, DispatchKey.BackendSelect, repeated)
    _add(save.python_key_table, FakeTensorMode, saved_in_theory)
    _add(save.python_key_table, ProxyTorchDispatchMode, traced)
    for operator in (save, repeat):
        operator._dispatch_cache.clear()


def _device(args: Any) -> torch.device | None:
    """Return the first tensor's device, if it is ours."""
    devices = (arg.device for arg in args if isinstance(arg, torch.Tensor))
    return next((device for device in devices if device.type == DEVICE), None)


def _add(table: Any, key: Any, ours: Callable[..., Any]) -> None:
    others = table[key]

    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (ours if _device(args) is not None else others)(*args, **kwargs)

    table[key] = chosen
