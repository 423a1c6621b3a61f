"""Replacements on the CPU for operators that only devices have: the same results, from operators of
the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torch_dml.compare import cross_entropy, recurrence

Tensors = tuple[torch.Tensor | None, ...]


def on_cpu(func: Any) -> Callable[..., Any]:
    """The operator itself, or its replacement."""
    return _EQUIVALENTS.get(func) or _OWN.get(func.name(), func)  # type: ignore[no-any-return]


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    debug: bool = False,
    *,
    scale: float | None = None,
) -> Tensors:
    scores, _ = _scores(query, key, bias, dropout, causal, scale)
    none = (None,) * 2
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1), *none


def _attention_backward(
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
    seed: torch.Tensor,
    offset: torch.Tensor,
    *,
    scale: float | None = None,
) -> Tensors:
    scores, factor = _scores(query, key, bias, dropout, causal, scale)
    weights = torch.softmax(scores, -1)
    of_scores = weights * (grad @ value.mT - (grad * out).sum(-1, keepdim=True))
    of_bias = of_scores.sum_to_size(bias.shape) if bias is not None and wanted[3] else None
    return of_scores @ key * factor, of_scores.mT @ query * factor, weights.mT @ grad, of_bias


def _scores(
    query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, dropout: float, causal: bool, scale: float | None
) -> tuple[torch.Tensor, float]:
    if dropout:
        raise NotImplementedError("attention with dropout in one operator")
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = query @ key.mT * factor
    if bias is not None:
        scores = scores + bias
    if causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~keep, -torch.inf)
    return scores, factor


def _lstm_cell(
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> Tensors:
    gates = of_input + of_hidden
    if input_bias is not None and hidden_bias is not None:
        gates = gates + input_bias + hidden_bias
    enter, forget, new, leave = gates.chunk(4, 1)
    enter, forget, new, leave = enter.sigmoid(), forget.sigmoid(), new.tanh(), leave.sigmoid()
    after = forget * cell + enter * new
    return leave * after.tanh(), after, torch.cat([enter, forget, new, leave], 1)


def _lstm_cell_backward(
    of_hidden: torch.Tensor | None,
    of_cell: torch.Tensor | None,
    before: torch.Tensor,
    after: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> Tensors:
    enter, forget, new, leave = workspace.chunk(4, 1)
    hidden = torch.zeros_like(after) if of_hidden is None else of_hidden
    squashed = after.tanh()
    cell = hidden * leave * (1 - squashed * squashed)
    if of_cell is not None:
        cell = cell + of_cell
    gates = torch.cat(
        [
            cell * new * enter * (1 - enter),
            cell * before * forget * (1 - forget),
            cell * enter * (1 - new * new),
            hidden * squashed * leave * (1 - leave),
        ],
        1,
    )
    return gates, cell * forget, gates.sum(0) if has_bias else None


_aten = torch.ops.aten
_EQUIVALENTS: dict[Any, Callable[..., Any]] = {
    _aten._scaled_dot_product_fused_attention_overrideable.default: _attention,
    _aten._scaled_dot_product_fused_attention_overrideable_backward.default: _attention_backward,
    _aten._thnn_fused_lstm_cell.default: _lstm_cell,
    _aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
}

# The engine's own operators, which exist after the device is loaded.
_OWN: dict[str, Callable[..., Any]] = {
    "torch_dml::cross_entropy": cross_entropy.cross_entropy,
    "torch_dml::cross_entropy_backward": cross_entropy.cross_entropy_backward,
    "torch_dml::recurrent_layer": recurrence.layer,
    "torch_dml::recurrent_layer_backward": recurrence.layer_backward,
}
