"""torch.compile with the backends that run PyTorch's own operators."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from support.compare import assert_same
from torch import nn

BACKENDS = ["eager", "aot_eager"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Block(nn.Module):
    """Attention and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.up, self.down = nn.Linear(8, 24), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        return x + self.down(F.gelu(self.up(x)))


def steps(module: nn.Module, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    optimizer = torch.optim.AdamW(module.parameters(), 0.01)
    losses = []
    for x in inputs:
        optimizer.zero_grad()
        loss = module(x.to("dml")).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return losses


@pytest.mark.parametrize("backend", BACKENDS)
def test_training(backend: str) -> None:
    module = Block().to("dml")
    # Another length makes the shapes symbolic.
    inputs = [torch.randn(2, n, 8) for n in (5, 5, 7, 6)]
    expected = steps(copy.deepcopy(module), inputs)
    assert_same(steps(torch.compile(module, backend=backend), inputs), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_convolution_and_dropout(backend: str) -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5), nn.Flatten()).to("dml")
    x = torch.randn(2, 3, 6, 6, device="dml", requires_grad=True)
    results = []
    for function in (module, torch.compile(module, backend=backend)):
        torch.manual_seed(1)
        y = function(x)
        results.append([y, *torch.autograd.grad(y.sum(), [x, *module.parameters()])])
    assert_same(results[1], [t.cpu() for t in results[0]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_mutation_and_no_grad(backend: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(y)
        x[1:] = 0
        return x.sum() + torch.arange(3, device=x.device).sum()

    x, y = torch.ones(3, 2, device="dml"), torch.ones(2, device="dml")
    with torch.no_grad():
        result = torch.compile(function, backend=backend, fullgraph=True)(x, y)
    assert result.item() == 9 and x.cpu().equal(torch.tensor([[3.0, 3], [0, 0], [0, 0]]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_recurrent_layers(backend: str) -> None:
    module = nn.LSTM(3, 4).to("dml")
    x = torch.randn(2, 2, 3, device="dml")
    compiled = torch.compile(module, backend=backend)
    assert_same(compiled(x)[0], module(x)[0].cpu())
    compiled(x)[0].sum().backward()


def test_an_optimizer_step() -> None:
    results = []
    for compiled in (False, True):
        p = torch.linspace(-1, 1, 6).to("dml").requires_grad_()
        optimizer = torch.optim.Adam([p], 0.1)
        step = torch.compile(optimizer.step, backend="aot_eager") if compiled else optimizer.step
        for _ in range(3):
            p.grad = p.detach() * 2
            step()
        results.append(p.detach().cpu())
    assert_same(results[1], results[0], atol=4e-6)  # a few units in the last place of what the steps begin with


def test_export() -> None:
    module = Block().to("dml").eval()
    x = torch.randn(2, 5, 8, device="dml")
    program = torch.export.export(module, (x,))
    assert_same(program.module()(x), module(x).cpu())
