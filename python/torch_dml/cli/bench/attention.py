"""Suite `attention`: causal attention of increasing sequence length in bfloat16, forward, and with
gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from torch_dml.cli.bench.measure import Bench, Row

_HEADS = 16
# Total number of positions of a batch, whatever the length of sequences.
_POSITIONS = 16_384


def run(bench: Bench) -> list[Row]:
    """Measure heads of 64 and 128. Operations are counted as half of those without a mask, and 2.5
    times that for gradients.
    """
    rows = []
    for head in (64, 128):
        for length in (128, 256) if bench.quick else (512, 4_096, 16_384):
            batch = 1 if bench.quick else _POSITIONS // length
            rows += _length(bench, batch, 2 if bench.quick else _HEADS, length, head)
    return rows


def _length(bench: Bench, batch: int, heads: int, length: int, head: int) -> list[Row]:
    shape = f"{batch}x{heads}x{length}x{head}"
    forward = Row(f"{shape}: forward", "TFLOP/s", more_is_better=True, bound="half")
    both = Row(f"{shape}: forward and backward", "TFLOP/s", more_is_better=True, bound="half")
    amount = 4 * batch * heads * length * length * head / 2 / 1e12
    values = [torch.randn(batch, heads, length, head) for _ in range(4)]
    for device in bench.devices:
        q, k, v, gradient = (value.to(device, torch.bfloat16) for value in values)
        bench.take(forward, device, lambda q=q, k=k, v=v: _attend(q, k, v), amount)  # type: ignore[misc]
        bench.take(both, device, _with_gradients(q, k, v, gradient), 3.5 * amount)
    return [forward, both]


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def _with_gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gradient: torch.Tensor
) -> Callable[[], tuple[torch.Tensor, ...]]:
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    return lambda: torch.autograd.grad(_attend(*inputs), inputs, gradient)
