"""Strides of results are the CPU's where they are not those of the input; other operators: test_operator_dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.compare import assert_same_outcome

OPERATORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "nonzero": torch.nonzero,
    "nonzero of nothing": lambda x: torch.nonzero(x * 0),
    "nonzero out": lambda x: torch.nonzero(x, out=x.new_empty(0, dtype=torch.int64)),
    "argwhere": torch.argwhere,
    **{f"unique {d}": (lambda x, d=d: torch.unique(x, dim=d)) for d in (0, 1, 2)},
    **{f"unique_consecutive {d}": (lambda x, d=d: torch.unique_consecutive(x, dim=d)) for d in (0, 1, 2)},
    "sort": lambda x: tuple(x.sort(1, stable=True)),
    "sort out": lambda x: torch.sort(x, stable=True, out=(x.new_empty(0), x.new_empty(0, dtype=torch.int64))),
    "roll": lambda x: x.roll((1, 2), (0, 1)),
    "roll of a row": lambda x: x.roll(3),
    "flip": lambda x: x.flip(0),
    "addr": lambda x: torch.addr(x[0], x[0, :, 0], x[0, 0]),
    "addr without itself": lambda x: torch.addr(x[0], x[0, :, 0], x[0, 0], beta=0),
    "masked_fill": lambda x: x.masked_fill(x > 1, 2),
    "masked_fill of a mask": lambda x: x[0].masked_fill(x > 1, 2),
    "index": lambda x: x[:, [1, 0]],
    "index by two": lambda x: x[[0, 1], :, [1, 0]],
    "index by matrices": lambda x: x[:, torch.tensor([[0, 1], [1, 2]]).to(x.device)],
    "index by a mask": lambda x: x[x[:, :, 0] > 0],
    "pow of a number": lambda x: torch.pow(2.0, x),
    "ldexp": lambda x: torch.ldexp(x, x),
    "hardtanh": torch.nn.functional.hardtanh,
    "nan_to_num": torch.nan_to_num,
    "mvlgamma": lambda x: torch.mvlgamma(x + 3, 2),
    "exp out": lambda x: torch.exp(x, out=x.new_empty(0)),
    "add out": lambda x: torch.add(x, x, out=x.new_empty(0)),
    "sum out": lambda x: torch.sum(x, 1, out=x.new_empty(0)),
    "cat out": lambda x: torch.cat([x, x], out=x.new_empty(0)),
}

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "rotated": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "sliced": lambda x: x.repeat(1, 1, 2)[..., ::2],
    "sliced and rotated": lambda x: x.repeat(2, 1, 1)[::2].movedim(0, -1).contiguous().movedim(-1, 0),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", OPERATORS)
def test_strides(name: str, view: str) -> None:
    x = torch.randint(0, 3, (2, 3, 4)).float()
    assert_same_outcome(OPERATORS[name], VIEWS[view](x))
