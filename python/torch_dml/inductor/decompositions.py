"""Operators that are taken apart as the engine computes them, where torch's own way is longer."""

from __future__ import annotations

from typing import Any

import torch

from torch_dml.inductor.functions import FUNCTIONS

aten = torch.ops.aten


def table() -> dict[Any, Any]:
    """Return Inductor's decompositions, without those of operators that are functions."""
    from torch._inductor.decomposition import select_decomp_table

    inductors = {operator: how for operator, how in select_decomp_table().items() if operator not in FUNCTIONS}
    return {**inductors, aten._softmax.default: softmax}


def softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    """Divide once for a row, as the engine's kernel does: exact divisions are long."""
    dtype = torch.float32 if half_to_float else x.dtype
    x = x.contiguous()
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    exponentials = torch.exp(x - torch.amax(x, dim, keepdim=True)) if x.numel() != 0 else torch.exp(x)
    return (exponentials * torch.sum(exponentials, dim, keepdim=True).reciprocal()).to(dtype)
