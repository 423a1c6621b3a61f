"""Attention with dropout, in steps: each is compared, and the dropout mask is the same in all runs.

The mask replaces the seed among the results of the fused operator, which passes it to its backward
pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten
FORWARD = _aten._scaled_dot_product_fused_attention_overrideable.default
BACKWARD = _aten._scaled_dot_product_fused_attention_overrideable_backward.default

# A function that calls an operator.
Run = Callable[[Any, Any, Any], Any]


def drops(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call is fused attention with dropout."""
    if func is FORWARD:
        return bool(args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0))
    return func is BACKWARD and bool(args[12])


def forward(
    run: Run,
    draw: Callable[[torch.Size, float, torch.device], torch.Tensor],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    """The results of the fused operator. `draw` returns a mask of a shape, in which False means
    dropped.
    """
    scores, weights = _weights(run, query, key, bias, is_causal, scale)
    mask = draw(weights.shape, dropout_p, query.device)
    kept = run(_aten.native_dropout_backward.default, (weights, mask, _gain(dropout_p)), {})
    out = run(_aten.bmm.default, (kept, _matrices(run, value)), {})
    total = run(_aten.logsumexp.default, (scores, [-1]), {})
    shape = query.shape[:-1]
    none = torch.empty(0, device=query.device)
    return (
        *(out.view(*shape, value.size(-1)), total.view(shape), None, None, query.size(-2), key.size(-2)),
        *(mask, none, None),
    )


def backward(
    run: Run,
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    wanted: list[bool],
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    cumulative_query: torch.Tensor | None,
    cumulative_key: torch.Tensor | None,
    longest_query: int,
    longest_key: int,
    dropout: float,
    causal: bool,
    mask: torch.Tensor,
    offset: torch.Tensor,
    *,
    scale: float | None = None,
) -> Any:
    """The gradients of query, key, value and bias, with the mask that `forward` has drawn."""
    _, weights = _weights(run, query, key, bias, causal, scale)
    gradient, gain = _matrices(run, grad), _gain(dropout)
    kept = run(_aten.native_dropout_backward.default, (weights, mask, gain), {})
    of_value = run(_aten.bmm.default, (kept.mT, gradient), {})
    of_kept = run(_aten.bmm.default, (gradient, _matrices(run, value).mT), {})
    of_weights = run(_aten.native_dropout_backward.default, (of_kept, mask, gain), {})
    of_scores = run(_aten._softmax_backward_data.default, (of_weights, weights, -1, weights.dtype), {})
    of_bias = None
    if bias is not None and wanted[3]:
        whole = of_scores.view(*query.shape[:-1], key.size(-2))
        added = [side for side in range(whole.dim()) if bias.expand_as(whole).stride(side) == 0]
        of_bias = run(_aten.sum.dim_IntList, (whole, added, True), {}).view(bias.shape) if added else whole
    scaled = run(_aten.mul.Scalar, (of_scores, _factor(query, scale)), {})
    of_query = run(_aten.bmm.default, (scaled, _matrices(run, key)), {})
    of_key = run(_aten.bmm.default, (scaled.mT, _matrices(run, query)), {})
    return of_query.view(query.shape), of_key.view(key.shape), of_value.view(value.shape), of_bias


def _weights(
    run: Run, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, causal: bool, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores and their softmax, of shape (batches and heads, queries, keys)."""
    scores = run(_aten.bmm.default, (_matrices(run, query), _matrices(run, key).mT), {})
    scores = run(_aten.mul.Scalar, (scores, _factor(query, scale)), {})
    flat = scores.shape
    if bias is not None:
        scores = run(_aten.add.Tensor, (scores.view(*query.shape[:-1], key.size(-2)), bias), {}).view(flat)
    if causal:
        hidden = ~torch.ones(flat[-2:], dtype=torch.bool).tril()
        scores = run(_aten.masked_fill.Scalar, (scores, hidden.to(query.device), -math.inf), {})
    return scores, run(_aten._softmax.default, (scores, -1, False), {})


def _matrices(run: Run, tensor: torch.Tensor) -> torch.Tensor:
    dense = run(_aten.clone.default, (tensor,), {"memory_format": torch.contiguous_format})
    return dense.view(-1, *tensor.shape[-2:])  # type: ignore[no-any-return]


def _factor(query: torch.Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.size(-1)) if scale is None else scale


def _gain(dropout: float) -> float:
    return 0.0 if dropout == 1 else 1 / (1 - dropout)
