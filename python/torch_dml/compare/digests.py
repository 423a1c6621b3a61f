"""Fingerprints of tensors: whether two runs agree bit for bit, without storing either."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch

Digests = dict[str, str]


def digest(named: Iterable[tuple[str, torch.Tensor]]) -> Digests:
    """A fingerprint of each tensor, by name."""
    return {name: _of(tensor) for name, tensor in named}


def of_model(model: torch.nn.Module) -> Digests:
    """The fingerprints of a model's weights, buffers and gradients."""
    state = [*model.named_parameters(), *model.named_buffers()]
    gradients = [(f"{name}.grad", one.grad) for name, one in model.named_parameters() if one.grad is not None]
    return digest([*state, *gradients])


def difference(one: list[Digests], other: list[Digests]) -> str | None:
    """The first step that differs, and what differs in it; None if all steps that both have
    agree.
    """
    for step, (left, right) in enumerate(zip(one, other, strict=False), start=1):
        different = [name for name in left if left[name] != right.get(name)]
        if different:
            more = f" and {len(different) - 3} more" if len(different) > 3 else ""
            return f"step {step}: {', '.join(different[:3])}{more}"
    return None


def _of(tensor: torch.Tensor) -> str:
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    host = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
    return hashlib.blake2b(host.numpy().tobytes() if host.numel() else b"", digest_size=16).hexdigest()
