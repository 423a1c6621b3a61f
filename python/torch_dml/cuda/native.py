"""The functions of torch._C that torch.cuda calls: implemented where they make sense for the
device, else an error that explains why not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_dml import device, graphs, memory


class NeedsCudaError(NotImplementedError):
    """Something needs NVIDIA's CUDA itself, but cuda:0 is a device of torch-dml."""


def needs_cuda(name: str) -> Callable[..., Any]:
    """Return a function that raises an error: `name` needs NVIDIA's CUDA."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise NeedsCudaError(
            f"{name} needs NVIDIA's CUDA itself, and the devices named cuda are torch-dml's in this process "
            "(docs/guide/from-cuda.md)"
        )

    return refuse


def _class_that_needs_cuda(name: str) -> type:
    # A class, since libraries use it in isinstance.
    return type(name, (), {"__init__": needs_cuda(f"torch.cuda.{name}"), "__doc__": "Needs NVIDIA's CUDA itself."})


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _exchange(index: int) -> int:
    previous = device.current_device()
    if index >= 0:
        device.set_device(index)
    return previous


def torch_c() -> dict[str, Any]:
    """Return the replacements for all of `torch._C._cuda_*`."""
    refused = {name: needs_cuda(f"torch._C.{name}") for name in dir(torch._C) if name.startswith("_cuda_")}
    return {
        **refused,
        "_cuda_init": device.init,
        "_cuda_isInBadFork": device.in_bad_fork,
        "_cuda_getDeviceCount": device.device_count,
        "_cuda_getDevice": device.current_device,
        "_cuda_setDevice": device.set_device,
        "_cuda_exchangeDevice": _exchange,
        "_cuda_maybeExchangeDevice": _exchange,
        "_cuda_hasPrimaryContext": lambda index: index < device.device_count(),
        "_cuda_canDeviceAccessPeer": device.can_device_access_peer,
        "_cuda_synchronize": device.synchronize,
        "_cuda_sleep": _nothing,
        "_cuda_emptyCache": memory.empty_cache,
        "_cuda_memoryStats": memory.memory_stats_as_nested_dict,
        "_cuda_resetPeakMemoryStats": memory.reset_peak_memory_stats,
        "_cuda_resetAccumulatedMemoryStats": memory.reset_accumulated_memory_stats,
        "_cuda_hostMemoryStats": memory.host_memory_stats,
        "_cuda_resetPeakHostMemoryStats": memory.reset_peak_host_memory_stats,
        "_cuda_resetAccumulatedHostMemoryStats": memory.reset_accumulated_host_memory_stats,
        "_cuda_setMemoryFraction": memory.set_per_process_memory_fraction,
        "_cuda_getMemoryFraction": memory.get_per_process_memory_fraction,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_ipc_collect": _nothing,
        "_cuda_lock_mutex": _nothing,
        "_cuda_unlock_mutex": _nothing,
        "_cuda_getArchFlags": lambda: None,
        "_cuda_getCompiledVersion": lambda: 0,
        "_cuda_isCurrentStreamCapturing": graphs.is_current_stream_capturing,
        "_cuda_clearCublasWorkspaces": _nothing,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_set_sync_debug_mode": _nothing,
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_cuda_set_cudnn_benchmark_limit": _nothing,
        "_cuda_get_conv_benchmark_empty_cache": lambda: False,
        "_cuda_tunableop_is_enabled": lambda: False,
    }


def torch_cuda() -> dict[str, Any]:
    """Return the replacements for names of `torch.cuda` that `torch.dml` does not have, or has
    under another name.
    """
    return {
        "CUDAGraph": graphs.Graph,
        "_lazy_init": device.init,
        "_lazy_call": lambda function, **_: function(),
        "_is_in_bad_fork": device.in_bad_fork,
        "_exchange_device": _exchange,
        "_maybe_exchange_device": _exchange,
        "_get_device_index": _index,
        "_is_compiled": lambda: True,
        "get_arch_list": lambda: ["sm_80"],
        "get_gencode_flags": lambda: "",
        "is_tf32_supported": lambda: False,
        "max_memory_cached": memory.max_memory_reserved,
        "memory_cached": memory.memory_reserved,
        "reset_max_memory_allocated": memory.reset_peak_memory_stats,
        "reset_max_memory_cached": memory.reset_peak_memory_stats,
        "host_memory_stats_as_nested_dict": memory.host_memory_stats,
        "get_allocator_backend": lambda: "native",
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": _nothing,
        "current_blas_handle": needs_cuda("torch.cuda.current_blas_handle"),
        "cudart": needs_cuda("torch.cuda.cudart"),
        "list_gpu_processes": needs_cuda("torch.cuda.list_gpu_processes"),
        "utilization": needs_cuda("torch.cuda.utilization"),
        "temperature": needs_cuda("torch.cuda.temperature"),
        "power_draw": needs_cuda("torch.cuda.power_draw"),
        "clock_rate": needs_cuda("torch.cuda.clock_rate"),
        "ExternalStream": _class_that_needs_cuda("ExternalStream"),
        "MemPool": _class_that_needs_cuda("MemPool"),
        "GreenContext": _class_that_needs_cuda("GreenContext"),
        "_device_count_nvml": device.device_count,
        "_nvml_based_avail": lambda: False,
    }


def _index(value: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Replacement for torch.cuda._utils._get_device_index."""
    if isinstance(value, str):
        value = torch.device(value)
    if isinstance(value, torch.device) and value.type == "cpu" and allow_cpu:
        return -1
    if value is None and not optional:
        raise ValueError("Expected a torch.device with a specified index or an integer, but got: None")
    return device.index_of(value)
