"""The bits of tensors, whatever their layout."""

from __future__ import annotations

import torch

from tests.support.compare import tensors

_COMPRESSED = {
    torch.sparse_csr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_bsr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_csc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
    torch.sparse_bsc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
}


def bits(value: object) -> list[tuple[torch.dtype, tuple[int, ...], bytes]]:
    """Dtype, shape and bytes of the tensors in a value, in order; two of them are equal if no bit
    differs, including those of NaN.
    """
    return [_dense(part) for tensor in tensors(value) for part in _parts(tensor.detach())]


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.is_nested:
        return list(tensor.unbind())
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in _COMPRESSED:
        return [*(indices(tensor) for indices in _COMPRESSED[tensor.layout]), tensor.values()]
    return [tensor]


def _dense(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...], bytes]:
    dense = tensor.cpu().resolve_conj().resolve_neg().flatten().clone(memory_format=torch.contiguous_format)
    return tensor.dtype, tuple(tensor.shape), dense.view(torch.uint8).numpy().tobytes()
