"""Operators of every family on tensors with all memory layouts: transposed, sliced, expanded,
...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_same_outcome
from tests.support.dtypes import dtypes, sample
from tests.support.layouts import LAYOUTS, lay_out, layouts

# Functions of a tensor of four dimensions, of which the last two are equal.
OPERATORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "exp": torch.exp,
    "add": lambda x: x + 1,
    "mul": lambda x: x * x,
    "compare": lambda x: x > 0,
    "where": lambda x: torch.where(x > 0, x, 0),
    "lerp": lambda x: torch.lerp(x, x[:1], 0.25),
    "gelu": F.gelu,
    "glu": lambda x: F.glu(x, 1),
    "copy": torch.clone,
    "cast": lambda x: x.to(torch.float16),
    "sum": lambda x: x.sum(1),
    "mean": torch.mean,
    "amax": lambda x: x.amax((0, -1)),
    "argmax": lambda x: x.argmax(-1),
    "var": lambda x: x.var(2),
    "norm": lambda x: x.norm(dim=1),
    "any": lambda x: (x > 2).any(1),
    "cumsum": lambda x: x.cumsum(1),
    "cummax": lambda x: tuple(x.cummax(2)),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
    "cat": lambda x: torch.cat([x, x], 1),
    "flip": lambda x: x.flip(0, 2),
    "roll": lambda x: x.roll(1, 2),
    "repeat": lambda x: x.repeat(2, 1, 1, 2),
    "tril": torch.tril,
    "index": lambda x: x[:, [1, 0]],
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: (x > 1).nonzero(),
    "index_select": lambda x: x.index_select(2, torch.tensor([2, 0], device=x.device)),
    "gather": lambda x: x.gather(3, (x > 0).long()),
    "scatter_add": lambda x: x.scatter_add(0, (x[1:2] > 0).long(), x[1:2]),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1),
    "sort": lambda x: x.sort(-1, stable=True),
    "topk": lambda x: x.topk(2, 1).values,
    "unique": lambda x: x.unique(),
    "searchsorted": lambda x: torch.searchsorted(x.sort(-1).values, x),
    "histc": lambda x: x.histc(4, 0, 4),
    "bmm": lambda x: x.flatten(0, 1).bmm(x.flatten(0, 1)),
    "linear": lambda x: F.linear(x, x[0, 0]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]),
    "mse_loss": lambda x: F.mse_loss(x, x[:1].expand_as(x), reduction="none"),
}

# Functions of images.
IMAGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "conv2d": lambda x: F.conv2d(x, x[:2, :, :3, :3]),
    "max_pool": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "adaptive_pool": lambda x: F.adaptive_avg_pool2d(x, 3),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "pad": lambda x: F.pad(x, (1, 1, 2, 0), "reflect"),
    "unfold": lambda x: F.unfold(x, 2),
    # The CPU's result has other strides unless the operator is composed of views and a copy.
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2).clone(memory_format=torch.contiguous_format),
    "group_norm": lambda x: F.group_norm(x, 2),
}


@layouts()
@dtypes(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, dtype: torch.dtype, layout: str) -> None:
    assert_same_outcome(OPERATORS[name], lay_out(sample(4, 4, 5, 5, dtype=dtype), layout))


@layouts("zero_dim")
@dtypes(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("name", IMAGES)
def test_operators_on_images(name: str, dtype: torch.dtype, layout: str) -> None:
    assert_same_outcome(IMAGES[name], lay_out(sample(4, 4, 5, 5, dtype=dtype), layout))


@layouts()
def test_a_layout_is_what_its_name_says(layout: str) -> None:
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    y = lay_out(x, layout)
    strides = {
        "contiguous": (60, 20, 5, 1),
        "transposed": (60, 20, 1, 4),
        "sliced": (132, 44, 11, 2),
        "expanded": (0, 20, 5, 1),
        "channels_last": (60, 1, 15, 3),
        "zero_dim": (),
        "empty": (60, 20, 5, 1),
    }
    assert strides.keys() == set(LAYOUTS)
    assert y.stride() == strides[layout]
    assert y.storage_offset() == (layout == "sliced")
    assert y.device.type == "cpu" and (y.shape == x.shape or layout in ("zero_dim", "empty"))
