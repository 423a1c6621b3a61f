"""Properties of a CUDA device, for devices of torch-dml."""

from __future__ import annotations

from dataclasses import dataclass

from torch_dml import device
from torch_dml.device import DeviceLike

# Ampere's: libraries conclude that there is bfloat16, and no feature that needs special kernels.
_CAPABILITY = (8, 0)


@dataclass(frozen=True)
class CudaDeviceProperties:
    """The fields of `torch.cuda.get_device_properties`, in bytes; if Vulkan does not report one, a
    usual value.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: int
    is_multi_gpu_board: int
    uuid: str
    gcnArchName: str
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    clock_rate: int = 0
    memory_clock_rate: int = 0
    memory_bus_width: int = 0


def get_device_properties(device_: DeviceLike = None) -> CudaDeviceProperties:
    """Return the properties of a device, under CUDA's names."""
    known = device.get_device_properties(device_)
    return CudaDeviceProperties(
        name=known.name,
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=known.total_memory,
        multi_processor_count=16,
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=32 << 10,
        shared_memory_per_block_optin=32 << 10,
        shared_memory_per_multiprocessor=64 << 10,
        L2_cache_size=4 << 20,
        is_integrated=int(known.kind == "integrated"),
        is_multi_gpu_board=0,
        uuid=known.uuid,
        gcnArchName=known.name,
    )


def get_device_capability(device_: DeviceLike = None) -> tuple[int, int]:
    """Return the compute capability that programs get."""
    device.index_of(device_)
    return _CAPABILITY
