"""Memory layouts of a tensor, and tests that run with each of them."""

from __future__ import annotations

import pytest
import torch

LAYOUTS = ["contiguous", "transposed", "sliced", "expanded", "channels_last", "zero_dim", "empty"]
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The elements of `x` in another layout.

    `sliced` does not begin at the start of its storage and has every second element; `expanded`
    repeats the first element of dimension 0; `zero_dim` is the first element alone and `empty` has
    none.
    """
    requires_grad, x = x.requires_grad, x.detach()
    if layout == "transposed" and x.dim() > 1:
        x = x.mT.contiguous().mT
    elif layout == "sliced" and x.dim() > 0:
        wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1] + 1)
        wide[..., 1::2] = x
        x = wide[..., 1::2]
    elif layout == "expanded" and x.dim() > 0:
        x = x[:1].expand(x.shape)
    elif layout == "channels_last" and x.dim() in CHANNELS_LAST:
        x = x.contiguous(memory_format=CHANNELS_LAST[x.dim()])
    elif layout == "zero_dim":
        x = x.reshape(-1)[0]
    elif layout == "empty" and x.dim() > 0:
        x = x[:0]
    return x.requires_grad_(requires_grad)


def views(x: torch.Tensor, *without: str) -> list[torch.Tensor]:
    """`x` in every layout that is possible for its rank, except those listed."""
    left_out = {
        *without,
        *(["transposed"] if x.dim() < 2 else []),
        *([] if x.dim() in CHANNELS_LAST else ["channels_last"]),
    }
    return [lay_out(x, layout) for layout in LAYOUTS if layout not in left_out]


def layouts(*without: str) -> pytest.MarkDecorator:
    """Runs a test once for each layout except those listed, as its argument `layout`."""
    return pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout not in without])
