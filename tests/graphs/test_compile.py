"""torch.compile with each of its backends."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.compile.compiled import compiled
from tests.support.compare import assert_same

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
    # Other lengths make the shapes symbolic.
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
    for compile_it in (False, True):
        p = torch.linspace(-1, 1, 6).to("dml").requires_grad_()
        optimizer = torch.optim.Adam([p], 0.1)
        step = torch.compile(optimizer.step, backend="aot_eager") if compile_it else optimizer.step
        for _ in range(3):
            p.grad = p.detach() * 2
            step()
        results.append(p.detach().cpu())
    assert_same(results[1], results[0], atol=4e-6)  # a few units in the last place of the initial values


def test_export() -> None:
    module = Block().to("dml").eval()
    x = torch.randn(2, 5, 8, device="dml")
    program = torch.export.export(module, (x,))
    assert_same(program.module()(x), module(x).cpu())


@pytest.mark.parametrize("mode", [None, "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_the_default_backend(mode: str | None) -> None:
    module = Block().to("dml")
    inputs = [torch.randn(2, n, 8) for n in (5, 5, 7)]
    expected = steps(copy.deepcopy(module), inputs)
    run = compiled(module, mode=mode)
    run.parameters = module.parameters  # type: ignore[attr-defined]
    assert_same(steps(run, inputs), expected, rtol=1e-5)


def test_the_default_backend_with_dynamic_shapes_and_no_inputs() -> None:
    run = compiled(lambda x: (x.sin() + x.shape[0]).sum(), dynamic=True)
    for n in (3, 4, 9):
        assert_same(run(torch.ones(n, device="dml")), (torch.ones(n).sin() + n).sum())
    assert compiled(lambda: torch.zeros(3, device="dml") + 1)().tolist() == [1, 1, 1]


def test_graphs_of_the_cpu_stay_with_their_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx
    from torch_dml.inductor import registration

    taken = []

    def compiler(graph: torch.fx.GraphModule, inputs: list[Any], *_: Any, **__: Any) -> Any:
        taken.append(inputs[0].device.type)
        return graph.forward

    monkeypatch.setattr(compile_fx, "compile_fx", compiler)
    run = torch.compile(lambda x: x * 2 + 1)
    assert run(torch.ones(2)).tolist() == [3, 3] and taken == ["cpu"]
    monkeypatch.undo()
    monkeypatch.setattr(registration, "compile_graph", compiler)
    assert run(torch.ones(2, device="dml")).tolist() == [3, 3] and taken == ["cpu", "dml"]


@pytest.mark.parametrize("compile_it", [False, True])
def test_flex_attention(compile_it: bool) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (torch.randn(2, 2, 16, 8, device="dml", requires_grad=True) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="dml")
    run = torch.compile(flex_attention) if compile_it else flex_attention
    found = run(q, k, v, None, mask)
    double = [x.detach().cpu().double().requires_grad_() for x in (q, k, v)]
    expected = F.scaled_dot_product_attention(*double, is_causal=True)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(expected)
    found_grads = torch.autograd.grad((found * weights.float().to("dml")).sum(), [q, k, v])
    expected_grads = torch.autograd.grad((expected * weights).sum(), double)
    for one, other in zip(found_grads, expected_grads, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=1e-5, atol=1e-5)
