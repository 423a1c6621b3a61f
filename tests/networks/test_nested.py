"""Nested tensors, and the encoder that packs its sequences into them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.compare import assert_same

# Creating and padding them warns that they are a prototype.
pytestmark = pytest.mark.filterwarnings("ignore:.*prototype.*")


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_encoder_with_padding(options: dict[str, Any]) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not options.get("norm_first", False)).eval()
    x, padding = torch.randn(2, 5, 16), torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    with torch.no_grad():
        expected = module(x, src_key_padding_mask=padding)
        got = copy.deepcopy(module).to("dml")(x.to("dml"), src_key_padding_mask=padding.to("dml"))
    assert_same(got, expected, 1e-5, 1e-5)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "padded": lambda n: n.to_padded_tensor(1.5),
    "arithmetic": lambda n: (n * 2 + n - n / 3).to_padded_tensor(0),
    "activations": lambda n: F.gelu(torch.relu(n)).to_padded_tensor(0),
    "unbind": lambda n: n.unbind()[1],
    "linear": lambda n: F.linear(n, torch.ones(3, 4, device=n.device), torch.ones(3, device=n.device)).to_padded_tensor(
        0
    ),
    "softmax": lambda n: n.softmax(-1).to_padded_tensor(0),
    "matmul": lambda n: (n @ n.transpose(1, 2)).to_padded_tensor(0),
    "layer_norm": lambda n: F.layer_norm(n, (4,), *torch.ones(2, 4, device=n.device)).to_padded_tensor(0),
    "copies": lambda n: n.clone().to("cpu").to(n.device).to_padded_tensor(0),
    "half": lambda n: n.half().to_padded_tensor(0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name: str) -> None:
    rows = [torch.randn(n, 4) for n in (2, 5, 3)]
    results = []
    for device in ("cpu", "dml"):
        leaves = [row.to(device, copy=True).requires_grad_() for row in rows]
        y = FUNCTIONS[name](torch.nested.as_nested_tensor(leaves))
        (y * torch.linspace(-1, 1, y.numel(), device=device).view(y.shape)).sum().backward()
        results.append([y, *(leaf.grad for leaf in leaves)])
    assert_same(results[1], results[0])


def test_rows_of_different_lengths_in_one_buffer() -> None:
    rows = [torch.randn(n, 8) for n in (2, 5, 3)]
    results = []
    for device in ("cpu", "dml"):
        weight = torch.linspace(-1, 1, 64).reshape(8, 8).to(device).requires_grad_()
        n = torch.nested.nested_tensor(rows, layout=torch.jagged, device=device)
        y = (F.linear(n, weight).sin() + 1).values()
        y.square().sum().backward()
        results.append([y, weight.grad])
    assert_same(results[1], results[0], terms=10)  # the gradient sums ten rows, whose terms cancel
