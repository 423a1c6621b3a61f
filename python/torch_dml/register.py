"""Registers the device with torch's Python code: its name, the module `torch.dml`, and the methods
of tensors.
"""

from __future__ import annotations

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from torch_dml import (
    autocast,
    data_parallel,
    defaults,
    dlpack,
    integrations,
    module,
    multiprocessing,
    serialization,
    storage,
    torch_compile,
)
from torch_dml.backend import AS_CUDA, DEVICE


def register() -> None:
    """Register the name, the module and `Tensor.dml()`, `Module.dml()`, `Tensor.is_dml` and similar
    methods.
    """
    if not AS_CUDA:
        rename_privateuse1_backend(DEVICE)
        torch._register_device_module(DEVICE, module)  # type: ignore[no-untyped-call]
        generate_methods_for_privateuse1_backend(
            for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
        )
        autocast.install()
        defaults.install()
    torch_compile.install()
    data_parallel.install()
    dlpack.install()
    multiprocessing.install()
    serialization.install()
    storage.install()
    integrations.install()
