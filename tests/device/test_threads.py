"""Several Python threads that use one device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.support.memory import allocated


def in_threads(work: Callable[[int], object], count: int = 6) -> list[object]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_each_thread_gets_its_own_results():
    def work(seed: int) -> bool:
        x = torch.full((1000,), float(seed), device="dml")
        for step in range(60):
            x = (x * 2 - x) + 1
            if step % 20 == 7 and x[3].item() != seed + step + 1:
                return False
        return x.eq(seed + 60).all().item()

    assert in_threads(work) == [True] * 6


def test_copies_and_events_from_threads():
    def work(seed: int) -> bool:
        host = torch.full((50_000,), seed).pin_memory()
        good = True
        for _ in range(10):
            there = host.to("dml", non_blocking=True)
            back = there.to("cpu", non_blocking=True)
            event = torch.dml.current_stream().record_event()
            event.synchronize()
            good &= torch.equal(back, host)
        return good

    assert in_threads(work) == [True] * 6


def test_one_tensor_that_all_threads_write_to():
    total = torch.zeros(4, device="dml")
    lock = threading.Lock()

    def work(seed: int) -> None:
        for _ in range(50):
            with lock:
                total.add_(1)

    in_threads(work)
    assert total.tolist() == [300] * 4


def test_backward_in_threads():
    weight = torch.ones(32, 32, device="dml")

    def work(seed: int) -> float:
        x = torch.full((8, 32), float(seed), device="dml", requires_grad=True)
        (x @ weight).relu().sum().backward()
        return x.grad.sum().item()

    assert in_threads(work)[1:] == [8 * 32 * 32.0] * 5


def test_an_error_stays_in_its_thread():
    def work(seed: int) -> str:
        try:
            torch.ones(seed + 2, device="dml") + torch.ones(seed + 20, device="dml")
        except RuntimeError as error:
            return str(error)
        return ""

    for seed, message in enumerate(in_threads(work)):
        assert str(seed + 2) in message and str(seed + 20) in message
    assert torch.ones(2, device="dml").tolist() == [1, 1]


def test_no_grad_and_dtype_are_a_threads_own():
    seen = []
    with torch.no_grad(), torch.autocast("dml", dtype=torch.float16):
        thread = threading.Thread(
            target=lambda: seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("dml")))
        )
        thread.start()
        thread.join()
    assert seen == [(True, False)]


def test_threads_come_and_go():
    before = allocated()
    for _ in range(20):
        in_threads(lambda seed: torch.ones(100, device="dml").sum().item(), 3)
    assert torch.dml.memory_allocated() == before


@pytest.mark.parametrize("layers", [3])
def test_training_in_threads(layers):
    def work(seed: int) -> list[float]:
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(16, 16, generator=generator).mul(0.2).dml().requires_grad_() for _ in range(layers)]
        optimizer = torch.optim.SGD(weights, lr=0.1)
        losses = []
        for _ in range(5):
            x = torch.ones(4, 16, device="dml")
            for weight in weights:
                x = (x @ weight).tanh()
            loss = (x - 0.5).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    first, *others = in_threads(work, 4)
    assert first[-1] < first[0] and all(losses == first for losses in others)
