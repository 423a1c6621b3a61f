"""Eight Python threads, and the threads of autograd, at the same time: no race, no deadlock, no
wrong result.
"""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.support.processes import THREADS, in_threads

LIMIT_S = 240


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A deadlock ends the run with the stacks of all threads."""
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(params=[1, 2], ids=["one device", "two devices"])
def devices(request: pytest.FixtureRequest) -> list[torch.device]:
    if torch.dml.device_count() < request.param:
        pytest.skip("there is one device")
    return [torch.device("dml", index) for index in range(request.param)]


def train(index: int, device: torch.device, steps: int = 12) -> list[torch.Tensor]:
    """Train this thread's network, with read-backs, uploads and an increasing set of live
    tensors.
    """
    generator = torch.Generator().manual_seed(index)
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    kept = []
    for step in range(steps):
        x = torch.randn(16, 20, generator=generator).to(device)
        t = torch.randint(5, (16,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        kept.append(loss.detach())
        if step % 3 == 0:
            assert loss.item() > 0
        if step % 5 == 4:
            torch.dml.synchronize(device)
    return [torch.stack(kept).cpu(), *(parameter.detach().cpu() for parameter in model.parameters())]


def test_training_in_threads_gives_the_same_bits_as_alone(devices: list[torch.device]) -> None:
    alone = [train(index, devices[index % len(devices)]) for index in range(THREADS)]
    together: list[list[torch.Tensor]] = [[] for _ in range(THREADS)]

    def work(index: int) -> None:
        for _ in range(3):
            together[index] = train(index, devices[index % len(devices)])

    in_threads(work)
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_graphs_beside_eager_work(devices: list[torch.device]) -> None:
    """Some threads capture and replay, one after the other; the others train."""
    capturing = [threading.Lock() for _ in devices]

    def work(index: int) -> None:
        at = index % len(devices)
        device = devices[at]
        if index < THREADS // 2:
            train(index, device)
            return
        weight = torch.full((64, 64), 1 / 64, device=device)
        x = torch.zeros(64, 64, device=device, requires_grad=True)
        for round_ in range(4):
            graph = torch.dml.Graph()
            with capturing[at], torch.dml.device(device), torch.dml.graph(graph):
                y = (x @ weight).relu() * (round_ + 1)
                (gradient,) = torch.autograd.grad(y.sum(), x)
            for value in range(1, 6):
                with torch.no_grad():
                    x.fill_(value)
                graph.replay()
                if value % 2 == 0:
                    assert y[5].tolist() == [value * (round_ + 1.0)] * 64
                    assert gradient[3].tolist() == [round_ + 1.0] * 64

    in_threads(work)


def test_tensors_pass_between_threads(devices: list[torch.device]) -> None:
    """Each thread continues with its neighbour's tensor of the previous round."""
    current = [torch.full((1000,), float(index), device=devices[0]) for index in range(THREADS)]
    following = list(current)
    turn = threading.Barrier(THREADS, timeout=LIMIT_S / 2)

    def work(index: int) -> None:
        for round_ in range(40):
            neighbour = current[(index + 1) % THREADS]
            following[index] = neighbour * 2 - neighbour + 1  # temporaries come and go
            turn.wait()
            current[index] = following[index]
            if round_ % 10 == 9:
                assert current[index][7].item() == (index + round_ + 1) % THREADS + round_ + 1
            turn.wait()

    in_threads(work)
    for index, tensor in enumerate(current):
        assert tensor.tolist() == [(index + 40) % THREADS + 40.0] * 1000


def test_copies_between_devices(devices: list[torch.device]) -> None:
    def work(index: int) -> None:
        for round_ in range(20):
            x = torch.arange(3000, dtype=torch.float32, device=devices[index % len(devices)]) + index
            y = x.to(devices[(index + round_) % len(devices)]) * 2
            assert y[round_].item() == 2 * (round_ + index)

    in_threads(work)


def test_memory_and_random_numbers(devices: list[torch.device]) -> None:
    """Caches are emptied and statistics read while others allocate; random numbers never repeat."""
    drawn: list[torch.Tensor] = [torch.empty(0)] * THREADS

    def work(index: int) -> None:
        device = devices[index % len(devices)]
        numbers = []
        for round_ in range(30):
            numbers.append(torch.rand(64, device=device, dtype=torch.float64))
            x = torch.full((1 << (8 + (index + round_) % 10),), float(round_), device=device)
            assert x.sum().item() == x.numel() * round_
            if round_ % 7 == index % 7:
                torch.dml.empty_cache()
            stats = torch.dml.memory_stats(device)
            assert stats["allocated_bytes.all.current"] <= stats["reserved_bytes.all.current"]
        drawn[index] = torch.cat(numbers).cpu()

    for at, device in enumerate(devices):
        with torch.dml.device(device):
            torch.dml.manual_seed(at)
    in_threads(work)
    everything = torch.cat(drawn)
    assert len(everything.unique()) == len(everything)
