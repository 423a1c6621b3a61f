"""How the device's kernels enter the program that Inductor writes."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import BackendFeature, DeviceOpOverrides
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.utils import get_kernel_metadata
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from torch_dml.backend import DEVICE
from torch_dml.inductor.kernel import DmlKernel


class DmlScheduling(SIMDScheduling):
    """Fuses as for other GPUs, and writes kernels of the engine's language."""

    kernel_type = DmlKernel

    def __init__(self, scheduler: Any) -> None:
        """Let the program import what its kernels need."""
        super().__init__(scheduler)
        # Features are asked of a scheduling without a graph.
        wrapper = getattr(V.graph, "wrapper_code", None)
        if wrapper is not None:
            wrapper.header.writeline("from torch_dml.inductor.runtime import kernel as dml_kernel")
            if DEVICE == "cuda":
                # Inductor's own allocates from CUDA itself.
                wrapper.header.writeline("from torch_dml.inductor.runtime import empty_strided as empty_strided_cuda")

    @classmethod
    def get_backend_features(cls, device: Any) -> OrderedSet[BackendFeature]:
        return OrderedSet([BackendFeature.INPLACE_BUFFERS, BackendFeature.MASKED_SCATTER_WITH_INDEX])

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: DmlKernel) -> str:
        """Define a kernel once for each text, and return its name."""
        wrapper = V.graph.wrapper_code
        if src_code not in wrapper.src_to_kernel:
            name = f"dml_kernel_{wrapper.next_kernel_suffix()}"
            wrapper.src_to_kernel[src_code] = name
            origins, detailed = get_kernel_metadata(node_schedule, wrapper)
            text = src_code.replace("KERNEL_NAME", name)
            call = f"dml_kernel('''\n{text}''')"
            if kernel.wide is not None:
                wide, replaced = kernel.wide
                wide = wide.replace("KERNEL_NAME", name)
                call = f"dml_kernel('''\n{text}''', wide=('''\n{wide}''', {replaced}))"
            wrapper.define_kernel(name, call, f"{origins}\n{detailed}", gpu=False)
        return wrapper.src_to_kernel[src_code]


class DmlOpOverrides(DeviceOpOverrides):
    """Lines of the programs that Inductor writes."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(index): return 0"

    def set_device(self, device_idx: int) -> str:
        return f"torch.accelerator.set_device_index({device_idx})"

    def synchronize(self) -> str:
        return "torch.accelerator.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.get_device_module('{DEVICE}').device({device_idx})"
