"""Writing to expanded tensors, whose elements share memory: what the CPU allows, and what not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_same_outcome
from tests.support.dtypes import dtypes

# In-place functions of a tensor [2, 3].
WRITERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "fill_": lambda x: x.fill_(3),
    "fill_ from a tensor": lambda x: x.fill_(x.new_tensor(3)),
    "fill_ from a tensor on the CPU": lambda x: x.fill_(torch.tensor(3)) if x.device.type == "dml" else x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "masked_fill_": lambda x: x.masked_fill_(
        torch.tensor([[True, False, False], [False, False, True]]).to(x.device), 5
    ),
    "masked_fill_ with a tensor": lambda x: x.masked_fill_((x > 0) & (x > 1), x.new_tensor(5)),
    "index_put_ of a mask": lambda x: x.index_put_(
        (torch.tensor([[True, False, False], [False, False, True]]).to(x.device),), x.new_tensor(5)
    ),
    "index_fill_": lambda x: x.index_fill_(1, torch.tensor([0]).to(x.device), 5),
    "threshold_": lambda x: F.threshold_(x, 1, 7),
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(torch.ones(2, 3).to(x.device)),
    "relu_": lambda x: x.relu_(),
    "clamp_": lambda x: x.clamp_(1),
    "random_": lambda x: x.random_(5),
    "index_add_": lambda x: x.index_add_(
        1, torch.tensor([0]).to(x.device), torch.ones(2, 1, dtype=x.dtype).to(x.device)
    ),
    "cumsum_": lambda x: x.cumsum_(0),
    "tril_": lambda x: x.tril_(),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 0, x.reshape(-1) + 0),
    "_foreach_zero_": lambda x: torch._foreach_zero_([x]),
    "_foreach_add_": lambda x: torch._foreach_add_([x], 1),
    "_foreach_copy_": lambda x: torch._foreach_copy_([x], [torch.ones(2, 3).to(x.device)]),
    "exp out": lambda x: torch.exp(torch.ones(2, 3).to(x.device), out=x.float() if x.numel() == 0 else x),
    "softmax out": lambda x: torch.softmax(torch.ones(2, 3).to(x.device), 1, out=x),
    "arange out": lambda x: torch.arange(3, out=x[0]),
}
# Functions that the CPU runs although several elements share an address, in any order.
ONLY_ON_CPU = ["softmax out", "arange out", "tril_"]


@dtypes(torch.float32, torch.int64)
@pytest.mark.parametrize("name", [name for name in WRITERS if name not in ONLY_ON_CPU])
def test_expanded(name: str, dtype: torch.dtype) -> None:
    def written(base: torch.Tensor) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [WRITERS[name](base.expand(2, 3)), base]

    for base in (torch.tensor([[0, 1, 2]]), torch.tensor([[0], [2]]), torch.tensor([2])):
        assert_same_outcome(written, base.to(dtype))


@pytest.mark.parametrize("name", ONLY_ON_CPU)
def test_what_has_one_value_for_several_places_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        WRITERS[name](torch.zeros(1, 1, device="dml").expand(2, 3))


@dtypes(torch.float32, torch.int64, torch.bool)
def test_empty_and_expanded(dtype: torch.dtype) -> None:
    functions: list[Callable[[torch.Tensor], Any]] = [
        lambda x: x.add_(x),
        lambda x: x.mul_(True),
        lambda x: x.fill_(1),
        lambda x: x.copy_(x[:, :1]),
        lambda x: x.masked_fill_(x > 0, True),
        lambda x: x.logical_not_(),
        lambda x: x.random_(),
        lambda x: x.eq_(x),
        lambda x: torch.eq(x, x, out=x),
    ]
    for function in functions:
        assert_same_outcome(function, torch.zeros(0, 1, dtype=dtype).expand(0, 3))


def test_a_warning_says_that_it_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
        torch.zeros(1, device="dml").expand(3).masked_fill_(torch.tensor([True, False, True]).to("dml"), 2)
