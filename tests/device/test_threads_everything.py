"""Threads that do, in random order, everything that a program does with a device, and check the
results.
"""

from __future__ import annotations

import faulthandler
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tests.support.environment import needs_timestamps
from tests.support.processes import THREADS, in_threads

LIMIT_S = 240
STEPS = 600
# Tensors hold integers below this: sums and products of them are exact in float32.
MODULUS = 251
SIDE = 32
LARGE = 40_000  # Elements; so many bytes are not copied in the command stream.


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A deadlock ends the run with the stacks of all threads."""
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Worker:
    """Tensors of one thread, on the device and on the CPU, and operations on them."""

    def __init__(self, index: int, devices: list[torch.device], capturing: list[threading.Lock]) -> None:
        at = index % len(devices)
        self.device, self.others = devices[at], devices
        self.capturing = capturing[at]
        self.random = random.Random(index)
        self.host = torch.Generator().manual_seed(index)
        self.generator = torch.Generator(self.device).manual_seed(index)
        self.drawn: list[torch.Tensor] = []
        self.events: list[torch.Event] = []
        self.stream = torch.Stream(self.device)
        self.live: list[tuple[torch.Tensor, torch.Tensor]] = []
        for _ in range(2):
            self.upload()

    def run(self, steps: int) -> None:
        actions = [
            (self.compute, 30),
            (self.in_place, 8),
            (self.free, 18),
            (self.upload, 5),
            (self.upload_large, 2),
            (self.check, 8),
            (self.check_without_waiting, 3),
            (self.backward, 4),
            (self.draw, 4),
            (self.events_and_streams, 5),
            (self.wait, 3),
            (self.ask, 3),
            (self.visit, 2),
            (self.graph, 2),
        ]
        weights = [weight for _, weight in actions]
        for action, _ in self.random.choices(actions, weights, k=steps):
            action()
        while self.live:
            self.check()
            self.live.pop()

    def numbers(self, *shape: int) -> torch.Tensor:
        return torch.randint(MODULUS, shape, generator=self.host).float()

    def pick(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.random.choice(self.live)

    def compute(self) -> None:
        scale, row = self.random.randrange(1, 9), self.random.randrange(SIDE)
        order = torch.randperm(SIDE, generator=self.host)
        there = order.to(self.device)
        functions = [
            lambda a, b, _: (a * scale + b - row).remainder(MODULUS),
            lambda a, b, _: (a @ b).remainder(MODULUS),
            lambda a, b, _: a.t().contiguous().maximum(b[row]),
            lambda a, _, order: a[order],
            lambda a, b, _: (a + b.sum(0, keepdim=True)).remainder_(MODULUS),
            lambda a, _, __: a.cumsum(1).remainder(MODULUS),
            lambda a, b, _: torch.cat((a[row:], b[:row])),
            lambda a, b, _: torch.where(a > b, a, b.flip(0)),
            lambda a, _, __: a.sort(dim=0).values,
        ]
        function = self.random.choice(functions)
        (a, cpu_a), (b, cpu_b) = self.pick(), self.pick()
        self.live.append((function(a, b, there), function(cpu_a, cpu_b, order)))

    def in_place(self) -> None:
        pair, (other, cpu_other) = self.pick(), self.pick()
        for tensor, addend in zip(pair, (other, cpu_other), strict=True):
            tensor[:, ::2].add_(addend[:, 1::2]).remainder_(MODULUS)

    def free(self) -> None:
        if len(self.live) > 2:
            self.live.pop(self.random.randrange(len(self.live)))

    def upload(self) -> None:
        numbers = self.numbers(SIDE, SIDE)
        self.live.append((numbers.to(self.device), numbers))

    def upload_large(self) -> None:
        numbers = self.numbers(LARGE)
        source = numbers.pin_memory() if self.random.random() < 0.5 else numbers
        there = source.to(self.device, non_blocking=True)
        part = self.random.randrange(LARGE - SIDE * SIDE)
        cut = slice(part, part + SIDE * SIDE)
        self.live.append((there[cut].view(SIDE, SIDE), numbers[cut].clone().view(SIDE, SIDE)))
        if self.random.random() < 0.5:
            assert torch.equal(there.cpu(), numbers)

    def check(self) -> None:
        tensor, expected = self.pick()
        if self.random.random() < 0.5:
            assert torch.equal(tensor.cpu(), expected)
        else:
            row, column = self.random.randrange(SIDE), self.random.randrange(SIDE)
            assert tensor[row, column].item() == expected[row, column].item()

    def check_without_waiting(self) -> None:
        tensor, expected = self.pick()
        back = tensor.to("cpu", non_blocking=True)
        expected = expected.clone()
        tensor.add_(1).sub_(1)
        torch.dml.current_stream(self.device).record_event().synchronize()
        assert torch.equal(back, expected)

    def backward(self) -> None:
        (a, cpu_a), (b, cpu_b) = self.pick(), self.pick()
        gradients = []
        for x, y in ((a, b), (cpu_a, cpu_b)):
            leaf = x.detach().requires_grad_()
            (leaf @ y).relu().sum().backward()
            gradients.append(leaf.grad.remainder(MODULUS))
        self.live.append((gradients[0], gradients[1]))

    def draw(self) -> None:
        self.drawn.append(torch.rand(3, 5, device=self.device, generator=self.generator))
        torch.randn(7, device=self.device)  # from the device's generator, which all threads share

    def events_and_streams(self) -> None:
        """One thread's events complete in order, whatever the stream."""
        event = torch.Event(self.device, enable_timing=True)
        with torch.dml.stream(self.stream):
            self.in_place()
            event.record(self.stream)
        torch.dml.current_stream(self.device).wait_event(event)
        self.events.append(event)
        if len(self.events) == 4:
            self.events[-1].synchronize()
            assert all(event.query() for event in self.events)
            assert all(first.elapsed_time(second) >= 0 for first, second in pairwise(self.events))
            self.events.clear()

    def wait(self) -> None:
        if self.random.random() < 0.7:
            torch.dml.synchronize(self.device)
            assert all(event.query() for event in self.events)
        else:
            torch.dml.empty_cache()

    def ask(self) -> None:
        torch.dml.current_stream(self.device).query()
        stats = torch.dml.memory_stats(self.device)
        assert 0 < stats["allocated_bytes.all.current"] <= stats["reserved_bytes.all.current"]

    def visit(self) -> None:
        """Copy to another device and back, if there is one."""
        tensor, expected = self.pick()
        other = self.random.choice(self.others)
        self.live.append(((tensor.to(other) + 1).to(self.device).remainder(MODULUS), (expected + 1).remainder(MODULUS)))

    def graph(self) -> None:
        """Capture an update and replay it; a device captures for one thread at a time."""
        if not self.capturing.acquire(blocking=False):
            return
        tensor, expected = self.pick()
        graph = torch.dml.Graph()
        with torch.dml.device(self.device), torch.dml.graph(graph):
            tensor.add_((tensor * 2).remainder(MODULUS)).remainder_(MODULUS)
        self.capturing.release()
        for _ in range(self.random.randrange(5)):
            graph.replay()
            expected.add_((expected * 2).remainder(MODULUS)).remainder_(MODULUS)


@pytest.fixture(params=[1, 2], ids=["one device", "two devices"])
def devices(request: pytest.FixtureRequest) -> list[torch.device]:
    if torch.dml.device_count() < request.param:
        pytest.skip("there is one device")
    return [torch.device("dml", index) for index in range(request.param)]


def look_on(device: torch.device, done: Future[None]) -> int:
    """Start and stop the profiler until the others are done; return how many kernels of others it
    recorded.

    This thread's own kernel is in each profile. (PyTorch starts the profiler in the main thread
    only.)
    """
    x = torch.ones(100, device=device)
    others = 0
    while not done.done():
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
            x.erfinv()
            wait([done], timeout=0.05)
        events = profiler.profiler.kineto_results.events()
        ran = [e for e in events if e.device_type() == DeviceType.PrivateUse1]
        assert [e.duration_ns() > 0 for e in ran if e.name() == "dml::erfinv"] == [True]
        others += len(ran) - 1
    return others


@pytest.mark.parametrize("profiled", [False, pytest.param(True, marks=needs_timestamps)], ids=["plain", "profiled"])
def test_everything_at_once(devices: list[torch.device], profiled: bool) -> None:
    capturing = [threading.Lock() for _ in devices]
    workers = [Worker(index, devices, capturing) for index in range(THREADS)]
    if not profiled:
        in_threads(lambda index: workers[index].run(STEPS))
    else:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
            pass  # The first result takes as long as the work of all threads.
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(in_threads, lambda index: workers[index].run(STEPS))
            others = look_on(devices[0], done)
            done.result()
        assert others > 100
    for index, worker in enumerate(workers):
        alone = torch.Generator(worker.device).manual_seed(index)
        for numbers in worker.drawn:
            assert torch.equal(numbers.cpu(), torch.rand(3, 5, device=worker.device, generator=alone).cpu())


def test_waits_from_all_sides(devices: list[torch.device]) -> None:
    """Half of the threads enqueue; the others wait, query, read back and empty caches all the
    time.
    """
    busy = threading.Semaphore(0)
    pinned = torch.empty(LARGE).pin_memory()

    def look_busy(index: int, device: torch.device) -> None:
        chance = random.Random(index)
        one = torch.ones(4, device=device)
        waits = [
            lambda: torch.dml.synchronize(device),
            lambda: torch.dml.current_stream(device).query(),
            lambda: torch.dml.current_stream(device).record_event().synchronize(),
            lambda: torch.Event(device).record(torch.dml.current_stream(device)),
            lambda: one[2].item(),
            lambda: torch.empty(chance.randrange(1, 1 << 22), dtype=torch.uint8, device=device),
            lambda: pinned.to(device, non_blocking=True),
            torch.dml.empty_cache,
        ]
        while not busy.acquire(blocking=False):
            chance.choice(waits)()
        busy.release()

    def work(index: int) -> None:
        device = devices[index // 2 % len(devices)]
        if index % 2:
            return look_busy(index, device)
        try:
            chance = random.Random(index)
            count, x = 0, torch.zeros(500, device=device)
            for _ in range(100):
                burst = chance.randrange(1, 90)  # A batch is submitted somewhere in the middle.
                for _ in range(burst):
                    x = x + 1 if chance.random() < 0.5 else x.add_(1)
                count += burst
                if chance.random() < 0.3:
                    assert x[chance.randrange(500)].item() == count
            assert x.tolist() == [count] * 500
        finally:
            busy.release()

    in_threads(work)


def test_errors_of_kernels(device: torch.device) -> None:
    """A bad index is raised once, in the next call of some thread; the other threads' results stay
    right.
    """
    table = torch.arange(10.0, device=device)
    raised, wrong = [0] * THREADS, [0] * THREADS

    def work(index: int) -> None:
        chance = random.Random(index)
        done = 0
        while done < 60:
            try:
                indices = torch.tensor([chance.randrange(10) for _ in range(20)])
                bad = chance.random() < 0.1
                if bad:
                    wrong[index] += 1
                    indices[3] = 10 + index
                result = table[indices.to(device)] * 2
                torch.dml.synchronize()
                if not bad:
                    assert torch.equal(result.cpu(), indices * 2.0)
                done += 1
            except IndexError as error:
                assert "out of bounds for dimension 0 with size 10" in str(error)
                raised[index] += 1

    in_threads(work)
    try:
        torch.dml.synchronize()
    except IndexError:
        raised[0] += 1
    assert 0 < sum(raised) <= sum(wrong)
    assert torch.equal((table + 1).cpu(), torch.arange(1.0, 11.0))
