"""An index error is raised in the thread that caused it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch


def bad_index(x: torch.Tensor, index: int) -> None:
    x.index_select(0, torch.tensor([index], device=x.device))


def in_another_thread(work: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def test_another_threads_reads_are_valid(device: torch.device) -> None:
    x = torch.arange(10.0, device=device)
    for step in range(10):
        bad_index(x, 100 + step)

        def innocent() -> None:
            assert x[3].item() == 3
            assert (x + 1).sum().item() == 55
            torch.dml.synchronize()
            assert x.index_select(0, torch.tensor([2], device=device)).item() == 2

        in_another_thread(innocent)
        with pytest.raises(IndexError, match=f"index {100 + step} is out of bounds"):
            x[3].item()
        assert x[3].item() == 3


def test_each_of_two_threads_gets_its_own(device: torch.device) -> None:
    x = torch.arange(10.0, device=device)
    made, raised = threading.Barrier(3), []

    def work(index: int) -> None:
        bad_index(x, index)
        made.wait()
        made.wait()
        try:
            x.cpu()
        except IndexError as error:
            raised.append((index, str(error)))

    threads = [threading.Thread(target=work, args=(index,)) for index in (20, 30)]
    for thread in threads:
        thread.start()
    made.wait()
    assert x[1].item() == 1  # This thread used no bad index.
    made.wait()
    for thread in threads:
        thread.join()
    assert sorted(index for index, _ in raised) == [20, 30]
    assert all(f"index {index} " in message for index, message in raised)


def test_a_thread_that_has_ended_leaves_its_error_to_others(device: torch.device) -> None:
    x = torch.arange(10.0, device=device)
    in_another_thread(lambda: bad_index(x, 50))
    with pytest.raises(IndexError, match="index 50"):
        for _ in range(100):
            x[0].item()


def test_a_replay_raises_in_the_thread_that_replays(device: torch.device) -> None:
    x = torch.arange(10.0, device=device)
    index = torch.tensor([0], device=device)
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = x.index_select(0, index)
    index.fill_(70)

    def work() -> None:
        graph.replay()
        with pytest.raises(IndexError, match="index 70"):
            y.cpu()

    in_another_thread(work)
    assert x[5].item() == 5
