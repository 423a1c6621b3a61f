"""Replacements on the CPU for the engine's fused cross-entropy and its gradient."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy as composed

_HALVES = (torch.float16, torch.bfloat16)
_REDUCTIONS = ("none", "mean", "sum")


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    widen: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Replacement for torch_dml::cross_entropy."""
    wide = logits.float() if logits.dtype in _HALVES else logits
    loss = composed(
        wide,
        target,
        None if weight is None else weight.to(wide.dtype),
        ignore_index=ignore_index,
        reduction=_REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )
    rows = _rows(wide)
    largest = rows.amax(1)
    logarithm = (rows - largest[:, None]).exp().sum(1).log()
    total = _weights(wide, target, weight, ignore_index).sum() if reduction else None
    return loss if widen else loss.to(logits.dtype), torch.stack([largest, logarithm]), total


def cross_entropy_backward(
    grad: torch.Tensor,
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    statistics: torch.Tensor,
    total: torch.Tensor | None,
) -> torch.Tensor:
    """Replacement for torch_dml::cross_entropy_backward."""
    wide = logits.float() if logits.dtype in _HALVES else logits
    rows = _rows(wide)
    classes = rows.size(1)
    scale = _weights(wide, target, weight, ignore_index) * grad.to(wide.dtype).flatten()
    if total is not None:
        scale = scale / total
    wanted = torch.full_like(rows, label_smoothing / classes)
    chosen = target.flatten().long()
    chosen = torch.where(chosen == ignore_index, 0, chosen)[:, None]
    wanted.scatter_add_(1, chosen, torch.full_like(chosen, 1 - label_smoothing, dtype=wanted.dtype))
    gradient = ((rows - statistics[0, :, None] - statistics[1, :, None]).exp() - wanted) * scale[:, None]
    dim = min(1, logits.dim() - 1)
    sizes = [*logits.shape[:dim], *logits.shape[dim + 1 :], classes]
    return gradient.reshape(sizes).movedim(-1, dim).to(logits.dtype)


def _rows(logits: torch.Tensor) -> torch.Tensor:
    """The logits as one row for each target."""
    dim = min(1, logits.dim() - 1)
    return logits.movedim(dim, -1).reshape(-1, logits.size(dim))


def _weights(logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, ignored: int) -> torch.Tensor:
    """The weight of each target; 0 if it is ignored."""
    counts = target.flatten() != ignored
    if weight is None:
        return counts.to(logits.dtype)
    return torch.where(counts, weight.to(logits.dtype)[torch.where(counts, target.flatten().long(), 0)], 0)
