"""Graphs: a replay gives the result of the captured work, and what cannot be captured raises an
error.
"""

from __future__ import annotations

import ast
import copy
import gc
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from tests.support.compare import assert_same
from tests.support.environment import ROOT
from tests.support.processes import run_python

DOCUMENT = ROOT / "docs" / "guide" / "graphs.md"


def captured(work: Callable[[], Any], **options: Any) -> tuple[torch.dml.Graph, Any]:
    graph = torch.dml.Graph()
    with torch.dml.graph(graph, **options):
        made = work()
    return graph, made


def test_replay_computes_with_what_its_inputs_hold(device: torch.device) -> None:
    x = torch.zeros(5, 7, device=device)
    graph, y = captured(lambda: (x * 2 + 1).sum(1))
    for scale in range(4):
        values = torch.arange(35.0).reshape(5, 7) * scale
        x.copy_(values)
        graph.replay()
        assert_same(y, (values * 2 + 1).sum(1))
    assert graph.stats()["launches"] >= 2


def test_inference_gives_the_same_bits_with_fewer_barriers(device: torch.device) -> None:
    class Heads(nn.Module):
        """Independent branches."""

        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Linear(12, 32)
            self.heads = nn.ModuleList(nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 3)) for _ in range(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            trunk = self.trunk(x).relu()
            return torch.cat([head(trunk).softmax(1) for head in self.heads], 1)

    model = Heads().to(device)
    x = torch.randn(9, 12, device=device)
    with torch.no_grad():
        graph, y = captured(lambda: model(x))
        for _ in range(3):
            x.copy_(torch.randn(9, 12))
            graph.replay()
            assert torch.equal(y, model(x))
    stats = graph.stats()
    assert stats["barriers"] * 2 < stats["barriers_in_order"], stats


def test_pointwise_chains_are_joined(device: torch.device) -> None:
    x = torch.randn(1000, device=device)

    def chain() -> tuple[torch.Tensor, torch.Tensor]:
        y = x
        for i in range(10):
            y = (y * 1.25 + i).tanh()
        return y, y.exp() - x

    graph, made = captured(chain)
    for _ in range(2):
        x.copy_(torch.randn(1000))
        graph.replay()
        assert all(torch.equal(one, two) for one, two in zip(made, chain(), strict=True))
    stats = graph.stats()
    assert stats["captured"] == 32
    if os.environ.get("TORCH_DML_FUSION") != "0":
        assert stats["launches"] <= 3
        assert stats["barriers"] <= 3


OPTIMIZERS: list[tuple[str, Callable[[Any], torch.optim.Optimizer]]] = [
    ("sgd", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    ("adam", lambda p: torch.optim.Adam(p, lr=0.01, capturable=True)),
    ("adam not foreach", lambda p: torch.optim.Adam(p, lr=0.01, capturable=True, foreach=False)),
    ("adam fused", lambda p: torch.optim.Adam(p, lr=0.01, fused=True, capturable=True)),
    ("adamw", lambda p: torch.optim.AdamW(p, lr=0.01, capturable=True, amsgrad=True)),
]


@pytest.mark.parametrize("make", [make for _, make in OPTIMIZERS], ids=[name for name, _ in OPTIMIZERS])
def test_training_steps_give_the_same_bits(device: torch.device, make: Callable[[Any], torch.optim.Optimizer]) -> None:
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)).to(device)
    twin = copy.deepcopy(model)
    x, t = torch.zeros(16, 10, device=device), torch.zeros(16, dtype=torch.int64, device=device)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss.detach()

    optimizer, other = make(model.parameters()), make(twin.parameters())
    for _ in range(2):  # creates the optimizers' states
        step(model, optimizer)
        step(twin, other)
    graph, loss = captured(lambda: step(model, optimizer))
    for _ in range(4):
        x.copy_(torch.randn(16, 10))
        t.copy_(torch.randint(4, (16,)))
        graph.replay()
        assert torch.equal(loss, step(twin, other))
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, two)
    stats = graph.stats()
    assert stats["barriers"] <= stats["barriers_in_order"] < stats["captured"], stats


def test_convolutions_and_normalisation_train(device: torch.device) -> None:
    def make() -> nn.Module:
        torch.manual_seed(3)
        body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(54))
        return nn.Sequential(body, nn.Linear(54, 5)).to(device)

    x, t = torch.randn(4, 1, 8, 8, device=device), torch.randn(4, 5, device=device)

    def gradients(model: nn.Module) -> list[torch.Tensor]:
        return list(torch.autograd.grad(mse_loss(model(x), t), list(model.parameters())))

    model = make()
    gradients(model)
    graph, static = captured(lambda: gradients(model))
    x.copy_(torch.randn(4, 1, 8, 8))
    graph.replay()
    for one, two in zip(static, gradients(make()), strict=True):
        assert torch.equal(one, two)


def test_small_uploads_are_captured_with_their_bytes(device: torch.device) -> None:
    x = torch.zeros(3, device=device)
    source = torch.tensor([1.0, 2.0, 3.0])

    def work() -> tuple[torch.Tensor, torch.Tensor]:
        x.copy_(source)
        x.add_(torch.tensor(10.0, device=device))
        return torch.tensor([True, False, True], device=device), x + 1

    graph, (mask, y) = captured(work)
    source.zero_()
    x.zero_()
    for _ in range(2):
        graph.replay()
        assert x.tolist() == [11.0, 12.0, 13.0]
        assert y.tolist() == [12.0, 13.0, 14.0]
        assert mask.tolist() == [True, False, True]


REFUSED: list[tuple[str, Callable[[torch.Tensor], Any], str]] = [
    ("item", lambda x: x.sum().item(), "reading from the device"),
    ("cpu", lambda x: x.cpu(), "reading from the device"),
    ("nonzero", lambda x: x.nonzero(), "reading from the device"),
    ("mask", lambda x: x[x > 0], "reading from the device"),
    ("if", lambda x: bool(x.any()), "reading from the device"),
    ("print", lambda x: str(x), "reading from the device"),
    ("synchronize", lambda x: torch.dml.synchronize(), "synchronize"),
    ("empty_cache", lambda x: torch.dml.empty_cache(), "cached memory"),
    ("large upload", lambda x: torch.zeros(100_000).to(x.device), "64 KiB"),
    ("seed", lambda x: torch.dml.manual_seed(1), "seeding"),
    ("set_rng_state", lambda x: torch.dml.set_rng_state(torch.dml.get_rng_state()), "seeding"),
    ("timing", lambda x: torch.dml.Event(enable_timing=True).record(), "event for timing"),
]


@pytest.mark.parametrize(("work", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_captured(device: torch.device, work: Callable[[torch.Tensor], Any], why: str) -> None:
    x = torch.ones(4, device=device)
    graph = torch.dml.Graph()
    with torch.autograd.set_multithreading_enabled(True):
        with pytest.raises(RuntimeError, match=why), torch.dml.graph(graph):
            x.add_(1)
            work(x)
        assert torch.autograd.is_multithreading_enabled(), "a capture leaves things as they were"
    assert not torch.dml.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="no graph was captured"):
        graph.replay()
    assert x.tolist() == [1.0] * 4, "nothing of it ran"
    # An error that was caught is raised again at the end: the graph would not be what the program
    # expects.
    with pytest.raises(RuntimeError, match=why), torch.dml.graph(graph):
        with pytest.raises(RuntimeError, match=why):
            work(x)
        with pytest.raises(RuntimeError, match=why):
            x.add_(1)
    with torch.dml.graph(graph):
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2.0] * 4


def test_other_exceptions_discard_the_capture(device: torch.device) -> None:
    x = torch.ones(4, device=device)
    graph = torch.dml.Graph()
    with pytest.raises(RuntimeError, match="must match the size"), torch.dml.graph(graph):
        x.add_(torch.ones(3, device=device))
    with pytest.raises(ZeroDivisionError), torch.dml.graph(graph):
        x.add_(1 / 0)
    with torch.dml.graph(graph):
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2.0] * 4


def test_misuse(device: torch.device) -> None:
    x = torch.ones(4, device=device)
    graph = torch.dml.Graph()
    with pytest.raises(RuntimeError, match="no graph"):
        graph.replay()
    with pytest.raises(RuntimeError, match="no graph"):
        graph.stats()
    with pytest.raises(RuntimeError, match="pool"):
        graph.pool()
    with pytest.raises(RuntimeError, match="no capture"):
        graph.capture_end()
    with pytest.raises(ValueError, match="capture_error_mode"):
        graph.capture_begin(capture_error_mode="none")
    with torch.dml.graph(graph):
        x.add_(1)
        with pytest.raises(RuntimeError, match="one at a time"):
            torch.dml.Graph().capture_begin()
    with pytest.raises(RuntimeError, match="holds a capture"):
        graph.capture_begin()
    graph.reset()
    graph.reset()
    graph.capture_begin()
    x.add_(1)
    graph.reset()
    assert not torch.dml.is_current_stream_capturing()
    assert x.tolist() == [1.0] * 4


def test_an_optimizer_that_counts_on_the_host_is_refused(device: torch.device) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    x.grad = torch.ones(3, device=device)
    adam = torch.optim.Adam([x])
    adam.step()
    with pytest.raises(RuntimeError, match="capturable=True"), torch.dml.graph(torch.dml.Graph()):
        adam.step()
    adam.step()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x, g: x.uniform_(generator=g),
        lambda x, g: x.normal_(generator=g),
        lambda x, g: x.copy_(torch.bernoulli(torch.full_like(x, 0.4), generator=g)),
        lambda x, g: x.copy_(torch.randperm(x.numel(), device=x.device, generator=g)),
        lambda x, g: x.exponential_(generator=g),
    ],
    ids=["uniform", "normal", "bernoulli", "randperm", "exponential"],
)
@pytest.mark.parametrize("own", [False, True], ids=["default generator", "own generator"])
def test_random_numbers_go_on(device: torch.device, draw: Callable[[Any, Any], torch.Tensor], own: bool) -> None:
    generator = torch.Generator(device) if own else None
    seed = generator.manual_seed if generator is not None else torch.dml.manual_seed
    x, y = torch.empty(1000, device=device), torch.empty(300, device=device)

    def twice() -> None:
        draw(x, generator)
        draw(y, generator)

    seed(5)
    twice()
    expected = []
    for _ in range(3):
        twice()
        expected.append((x.clone(), y.clone(), draw(torch.empty(77, device=device), generator)))
    seed(5)
    twice()
    graph, _ = captured(twice)
    for first, second, third in expected:
        graph.replay()
        assert torch.equal(x, first)
        assert torch.equal(y, second)
        assert torch.equal(draw(torch.empty(77, device=device), generator), third)
    assert not torch.equal(expected[0][0], expected[1][0])


def test_dropout_draws_anew(device: torch.device) -> None:
    model = nn.Sequential(nn.Linear(8, 200), nn.Dropout(0.5)).to(device)
    x = torch.randn(3, 8, device=device)
    model(x)
    graph, y = captured(lambda: model(x).detach())
    torch.dml.manual_seed(1)
    expected = [model(x).detach().clone() for _ in range(3)]
    torch.dml.manual_seed(1)
    for one in expected:
        graph.replay()
        assert torch.equal(y, one)


def test_an_index_error_in_a_replay_is_raised(device: torch.device) -> None:
    table = torch.arange(10.0, device=device)
    at = torch.tensor([1, 2], device=device)
    graph, y = captured(lambda: table.index_select(0, at))
    graph.replay()
    assert y.tolist() == [1.0, 2.0]
    at.copy_(torch.tensor([3, 10]))
    graph.replay()
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        torch.dml.synchronize()
    at.copy_(torch.tensor([3, 9]))
    graph.replay()
    assert y.tolist() == [3.0, 9.0]


def test_memory_of_a_graph_is_its_own(device: torch.device) -> None:
    x = torch.ones(1000, device=device)
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = (x + 1) * 2
    before = torch.dml.memory_reserved()
    others = [torch.full((1000,), 9.0, device=device) for _ in range(50)]
    graph.replay()
    assert y.tolist() == [4.0] * 1000
    assert all(other[0].item() == 9.0 for other in others)
    del others
    graph.reset()
    assert y.tolist() == [4.0] * 1000, "an output outlives its graph"
    del y, x
    gc.collect()
    torch.dml.empty_cache()
    assert torch.dml.memory_reserved() <= before


def test_memory_freed_outside_harms_nothing_else(device: torch.device) -> None:
    x = torch.ones(2_000_000, device=device)
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = x + 1
    graph.replay()
    del x
    torch.dml.empty_cache()
    graph.replay()
    torch.dml.synchronize()
    graph.reset()
    torch.dml.empty_cache()
    assert y.shape == (2_000_000,)
    assert torch.ones(3, device=device).tolist() == [1.0] * 3


def test_graphs_share_a_pool(device: torch.device) -> None:
    x = torch.ones(300_000, device=device)
    pool = torch.dml.graph_pool_handle()
    first, y = captured(lambda: ((x + 1) * (x + 2)).sum(), pool=pool)
    reserved = torch.dml.memory_reserved()
    second, z = captured(lambda: ((x + 3) * (x + 4)).sum(), pool=first.pool())
    assert torch.dml.memory_reserved() == reserved
    first.replay()
    assert y.item() == 6 * 300_000
    second.replay()
    assert z.item() == 20 * 300_000
    own, _ = captured(lambda: x + 1)
    assert own.pool() is not pool


def test_a_capture_is_the_threads_own(device: torch.device) -> None:
    x = torch.ones(64, device=device)
    found: list[Any] = []

    def other() -> None:
        found.append(torch.dml.is_current_stream_capturing())
        w = torch.ones(64, device=device, requires_grad=True)
        (w * 3).sum().backward()
        found.append(w.grad.sum().item())
        try:
            torch.dml.Graph().capture_begin()
        except RuntimeError as error:
            found.append("another thread" in str(error))

    graph = torch.dml.Graph()
    in_stream: list[bool] = []
    with torch.dml.graph(graph):
        y = x + 1
        assert torch.dml.is_current_stream_capturing()
        if hasattr(torch.Stream, "is_capturing"):
            in_stream.append(torch.accelerator.current_stream().is_capturing())
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [False, 192.0, True]
    if hasattr(torch.Stream, "is_capturing"):
        assert in_stream == [True]
        assert not torch.accelerator.current_stream().is_capturing()
    assert graph.stats()["launches"] == 1
    thread = threading.Thread(target=graph.replay)
    thread.start()
    thread.join()
    assert y.tolist() == [2.0] * 64


@pytest.mark.parametrize("training", [False, True])
def test_make_graphed_callables(device: torch.device, training: bool) -> None:
    def make() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6)).to(device).train(training)

    graphed, eager = (make(), make()), (make(), make())
    sample = torch.randn(5, 6, device=device, requires_grad=True)
    graphed = torch.dml.make_graphed_callables(graphed, ((sample,), (torch.randn_like(sample).requires_grad_(),)))
    optimizers = [torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1) for a, b in (graphed, eager)]
    for _ in range(3):
        x = torch.randn(5, 6)
        losses = []
        for (first, second), optimizer in zip((graphed, eager), optimizers, strict=True):
            given = x.to(device).requires_grad_()
            optimizer.zero_grad()
            loss = second(first(given).relu()).square().mean()
            loss.backward()
            optimizer.step()
            losses.append((loss.detach(), given.grad))
        assert torch.equal(losses[0][0], losses[1][0])
        assert torch.equal(losses[0][1], losses[1][1])
    # In the other mode the module runs normally.
    graphed[0].train(not training)
    assert_same(graphed[0](sample[:2]), eager[0](sample[:2]).cpu())


def test_make_graphed_callables_of_a_function(device: torch.device) -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": a + b, "product": a * b}

    sample = torch.randn(4, device=device, requires_grad=True), torch.randn(4, device=device)
    graphed = torch.dml.make_graphed_callables(function, sample)
    b = torch.randn(4, device=device)
    c = torch.randn(4, device=device, requires_grad=True)
    made = graphed(c, b * 2)
    made["product"].sum().backward()
    assert_same(made["sum"], (c + b * 2).detach().cpu())
    assert_same(c.grad, (b * 2).cpu())
    with pytest.raises(TypeError, match="2 arguments"):
        graphed(c)
    with pytest.raises(TypeError, match="tuple of tensors"):
        torch.dml.make_graphed_callables(function, (b, 3))


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.M | re.S))
def test_what_the_document_shows(code: str) -> None:
    done = run_python("-c", "import torch_dml\n" + code, TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr
    for comment in re.findall(r"print\(graph.stats\(\)\)  # (.*)", code):
        assert ast.literal_eval(comment) == ast.literal_eval(done.stdout.splitlines()[-1])


def test_a_changing_learning_rate_is_a_tensor(device: torch.device) -> None:
    x = torch.zeros(3, device=device, requires_grad=True)
    x.grad = torch.ones(3, device=device)
    rate = torch.tensor(1.0, device=device)
    adam = torch.optim.Adam([x], lr=rate, capturable=True, eps=0)
    adam.step()
    graph, _ = captured(adam.step)
    for value in (0.5, 0.25):
        rate.fill_(value)
        before = x.detach().clone()
        graph.replay()
        assert_same(before - x.detach(), torch.full((3,), value), terms=8)


def test_captures_leave_the_hooks_of_optimizers_alone(device: torch.device) -> None:
    """Another thread may be iterating over them."""
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks
    before = list(hooks)
    with torch.dml.graph(torch.dml.Graph()):
        assert list(hooks) == before
    assert list(hooks) == before
