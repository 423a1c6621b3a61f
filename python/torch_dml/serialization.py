"""Checkpoints in which the device has another of its names, and those of sparse tensors.

torch-directml writes "privateuseone:0"; and a file that was written as "dml" can also be read with
the device in place of CUDA.

A sparse tensor is saved as its indices and values on the device, as PyTorch saves CUDA's. Of a
backend of one's own, PyTorch saves a copy on the CPU instead, which `torch.load` moves to the
device whatever its `map_location`, and in the format before zip files even before it reads the
elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.serialization

from torch_dml.backend import DEVICE

_OTHER_NAMES = {"dml", "privateuseone"} - {DEVICE}
# After torch's own handlers, which know torch's names.
_PRIORITY = 100

# The tensors that a tensor of each sparse layout consists of, besides its sizes.
_PARTS: dict[torch.layout, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    torch.sparse_coo: lambda t: (t._indices(), t._values()),
    torch.sparse_csr: lambda t: (t.crow_indices(), t.col_indices(), t.values()),
    torch.sparse_csc: lambda t: (t.ccol_indices(), t.row_indices(), t.values()),
    torch.sparse_bsr: lambda t: (t.crow_indices(), t.col_indices(), t.values()),
    torch.sparse_bsc: lambda t: (t.ccol_indices(), t.row_indices(), t.values()),
}


def install() -> None:
    """Let `torch.load` move storages that were saved under another name of the device to the
    device, and `torch.save` save sparse tensors of the device as their parts.
    """
    register: Callable[..., None] = torch.serialization.register_package
    register(_PRIORITY, _tag, _restore)

    original: Callable[[torch.Tensor, int], Any] = torch.Tensor._reduce_ex_internal

    def reduce(self: torch.Tensor, protocol: int) -> Any:
        if self.device.type == DEVICE and self.layout in _PARTS:
            return _reduce_sparse(self)
        return original(self, protocol)

    torch.Tensor._reduce_ex_internal = reduce  # type: ignore[method-assign]


def _reduce_sparse(tensor: torch.Tensor) -> tuple[Callable[..., torch.Tensor], tuple[Any, ...]]:
    """Return what rebuilds a sparse tensor, in PyTorch's form."""
    parts = (*_PARTS[tensor.layout](tensor), tensor.size())
    if tensor.layout == torch.sparse_coo:
        parts = (*parts, tensor.is_coalesced())
    return torch._utils._rebuild_sparse_tensor, (tensor.layout, parts)


def _tag(_: torch.storage.UntypedStorage) -> None:
    # Storages are saved under torch's name for the device.
    return None


def _restore(storage: torch.storage.UntypedStorage, location: str) -> torch.storage.UntypedStorage | None:
    name, _, index = location.partition(":")
    if name not in _OTHER_NAMES:
        return None
    restore: Callable[..., torch.storage.UntypedStorage] = torch.serialization.default_restore_location
    return restore(storage, f"{DEVICE}:{index or 0}")
