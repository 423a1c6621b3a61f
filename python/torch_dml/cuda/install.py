"""Lets `torch.cuda` use the device, after the plugin has replaced CUDA."""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import torch
import torch.cuda
import torch.profiler
from torch.profiler import ProfilerActivity

from torch_dml import device, module
from torch_dml.cuda import native, storage
from torch_dml.cuda.properties import get_device_capability, get_device_properties
from torch_dml.legacy import tensor_types

# Attributes of the module `torch.dml` that `torch.cuda` has under another name or in a version of
# its own.
_OWN = {"get_device_capability", "get_device_properties", "memory", "random", "streams"}


def install(library: ctypes.CDLL) -> None:
    """Replace the parts of `torch.cuda` and `torch._C` that use CUDA."""
    for name in module.__all__:
        if name not in _OWN:
            _replace(name, getattr(module, name))
    for name, function in native.torch_cuda().items():
        _replace(name, function)
    _replace("get_device_capability", get_device_capability)
    _replace("get_device_properties", get_device_properties)
    for name in ("is_available", "device_count", "_lazy_init"):
        _replace(name, _announcing(getattr(torch.cuda, name)))
    for name, function in native.torch_c().items():
        setattr(torch._C, name, _another(function))
    if not torch._C._has_cuda:
        _complete()
    torch.cuda._initialized = True
    # Read when a profiler first starts, which would print that NVIDIA's library finds no driver.
    os.environ.setdefault("KINETO_LOG_LEVEL", "5")
    torch.dml = module  # type: ignore[attr-defined]
    storage.install(library)
    torch.backends.cudnn.enabled = False


def _complete() -> None:
    """Add what builds of torch without CUDA lack, such as those for Windows."""

    def missing(name: str) -> Any:
        if not name.startswith("_cuda_"):
            raise AttributeError(f"module 'torch._C' has no attribute {name!r}")
        # Stored, so that the same function is returned each time.
        setattr(torch._C, name, native.needs_cuda(f"torch._C.{name}"))
        return vars(torch._C)[name]

    # PyTorch imports some of these if it believes that it is built with CUDA: with torch._dynamo,
    # and therefore with every optimizer.
    torch._C.__getattr__ = missing  # type: ignore[method-assign]
    torch._C._has_cuda = True
    # In such builds, `torch.cuda.FloatTensor` is a class that only raises.
    vars(torch.cuda).update(tensor_types())
    if sys.platform != "win32":
        # The plugin provides the profiler with its kernels there (plugin/profiler/kineto.cpp).
        for module_ in (torch.autograd, torch.autograd.profiler, torch.profiler):
            vars(module_)["_supported_activities"] = _supported_activities


def _supported_activities() -> set[ProfilerActivity]:
    return {*torch._C._autograd._supported_activities(), ProfilerActivity.CUDA}


def _replace(name: str, value: Any) -> None:
    """Set a name of torch.cuda, and of its submodules that define it."""
    if isinstance(value, FunctionType):
        value = _another(value)
    setattr(torch.cuda, name, value)
    for below in ("memory", "random", "streams", "graphs"):
        place: ModuleType = getattr(torch.cuda, below)
        if name in vars(place):
            setattr(place, name, value)


def _another(function: Callable[..., Any]) -> Callable[..., Any]:
    # torch.compile has a rule for each function, by its name, and refuses one that has two names
    # with different rules.
    return functools.wraps(function)(lambda *arguments, **named: function(*arguments, **named))


def _announcing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Announce the devices before the functions that programs call first. At import, it would start
    the driver, and break forks.
    """

    @functools.wraps(function)
    def announcing(*arguments: Any, **named: Any) -> Any:
        _announce()
        return function(*arguments, **named)

    return announcing


@functools.cache
def _announce() -> None:
    """Print once, on stderr, which device is in place of CUDA. Worker processes do not print it."""
    # A fork server, the default from Python 3.14 on, has no parent process, and imports the program
    # for its children.
    inheriting = getattr(multiprocessing.current_process(), "_inheriting", False)
    if inheriting or multiprocessing.parent_process() is not None:
        return
    names = [device.get_device_name(index) for index in range(device.device_count())]
    devices = ", ".join(f"cuda:{index} is {name}" for index, name in enumerate(names)) or "there is no device"
    print(f"torch-dml stands in for CUDA: {devices}", file=sys.stderr)
