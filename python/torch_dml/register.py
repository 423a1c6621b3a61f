"""Makes the device known to torch's Python side: its name, the module `torch.dml`, and the methods of tensors."""

from __future__ import annotations

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from torch_dml import dlpack, module, multiprocessing
from torch_dml.loader import DEVICE


def register() -> None:
    """Register the name, the module and `Tensor.dml()`, `Module.dml()`, `Tensor.is_dml` and their kin."""
    rename_privateuse1_backend(DEVICE)
    torch._register_device_module(DEVICE, module)  # type: ignore[no-untyped-call]
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    dlpack.install()
    multiprocessing.install()
