"""Two devices at once. If a machine has one adapter, it is opened as two independent devices (see
conftest).
"""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from torch.nn.parallel import comm

from tests.support.dtypes import dtypes

ONE, TWO = torch.device("dml:0"), torch.device("dml:1")


def test_both_are_there():
    assert torch.dml.device_count() >= 2
    assert torch.dml.get_device_properties(1).total_memory > 0
    assert not torch.dml.can_device_access_peer(0, 1)
    with pytest.raises(RuntimeError, match="31"):
        torch.dml.can_device_access_peer(0, 31)


def test_the_current_device():
    with torch.dml.device(1):
        assert torch.dml.current_device() == 1
        assert torch.ones(1, device="dml").device == torch.randn(2, device="dml").device == TWO
        with torch.dml.device_of(torch.ones(1, device=ONE)):
            assert torch.dml.current_device() == 0
        with torch.accelerator.device_index(0):
            assert torch.zeros(1).dml().device == ONE
        assert torch.zeros(1).dml().device == TWO and torch.zeros(1).dml(0).device == ONE
    assert torch.dml.current_device() == 0
    torch.dml.set_device(TWO)
    try:
        assert torch.ones(1, device="dml").device == TWO
    finally:
        torch.dml.set_device(0)


def test_operators_run_where_their_tensors_are():
    x = torch.arange(6.0, device=TWO)
    y = (x.view(2, 3) @ x.view(3, 2)).relu().sum(0) + torch.ones(2, device=TWO)
    assert y.device == TWO and torch.dml.current_device() == 0
    host = torch.arange(6.0)
    assert torch.equal(y.cpu(), (host.view(2, 3) @ host.view(3, 2)).relu().sum(0) + 1)
    assert torch.empty_like(x).device == x.new_zeros(3).device == torch.rand_like(x).device == TWO


@pytest.mark.parametrize("count", [0, 1, 1000, 3_000_001])
@dtypes(torch.float32, torch.uint8, torch.int64, torch.complex64)
def test_copies_from_device_to_device(count, dtype):
    host = torch.arange(count).remainder(127).to(dtype)
    there = host.to(ONE).to(TWO)
    assert there.device == TWO and torch.equal(there.cpu(), host)
    back = torch.empty(count, dtype=dtype, device=ONE)
    back.copy_(there, non_blocking=True)
    assert torch.equal(back.cpu(), host)


def test_copies_of_strided_tensors_and_casts():
    x = torch.arange(24.0, device=ONE).view(4, 6)
    assert torch.equal(x.t().to(TWO).cpu(), x.t().cpu())
    assert torch.equal(x[:, 1::2].to(TWO, torch.float16).cpu(), x[:, 1::2].half().cpu())
    target = torch.zeros(6, 4, device=TWO).t()
    target.copy_(x)
    assert torch.equal(target.cpu(), x.cpu())
    target[1].copy_(x[0])
    assert torch.equal(target[1].cpu(), x[0].cpu())


def test_a_copy_waits_for_the_work_before_it():
    x = torch.zeros(1 << 18, device=ONE)
    for _ in range(30):
        x += 1
    y = x.to(TWO)
    x += 100
    y *= 2
    assert y.eq(60).all().item() and x.eq(130).all().item()


def test_mixed_devices_are_refused():
    for operator in (torch.add, torch.matmul, torch.dot):
        with pytest.raises(RuntimeError, match=r"same device.*dml:[01].*dml:[01]"):
            operator(torch.ones(3, device=ONE), torch.ones(3, device=TWO))
    assert (torch.ones(3, device=TWO) + torch.tensor(1.0)).device == TWO


def test_gradients_cross_devices():
    x = torch.ones(3, device=ONE, requires_grad=True)
    y = (x * 2).to(TWO)
    (y * torch.arange(3.0, device=TWO)).sum().backward()
    assert x.grad.device == ONE and x.grad.tolist() == [0, 2, 4]


def test_events_across_devices():
    stream = torch.dml.default_stream(1)
    x = torch.zeros(1 << 16, device=ONE)
    for _ in range(20):
        x += 1
    event = torch.dml.current_stream(0).record_event()
    stream.wait_event(event)  # blocks the host, as the other queue cannot be blocked
    assert event.query()
    with torch.dml.stream(stream):
        assert x.to(TWO).eq(20).all().item()
    other = torch.Event("dml:1")
    other.record(stream)
    torch.dml.current_stream().wait_event(other)
    assert other.query() and stream.query()


def test_each_has_its_generator():
    torch.manual_seed(5)
    a, b = torch.rand(4, device=ONE), torch.rand(4, device=TWO)
    assert torch.equal(a.cpu(), b.cpu())  # the same seed gives the same numbers
    torch.rand(4, device=ONE)
    torch.dml.manual_seed_all(5)
    assert torch.equal(torch.rand(4, device=TWO).cpu(), b.cpu())
    with torch.dml.device(1):
        torch.dml.manual_seed(6)
    assert torch.dml.initial_seed(0) == 5 and torch.dml.initial_seed(1) == 6
    states = torch.dml.get_rng_state_all()
    torch.rand(3, device=ONE), torch.rand(3, device=TWO)
    torch.dml.set_rng_state_all(states)
    assert all(torch.equal(x, y) for x, y in zip(torch.dml.get_rng_state_all(), states, strict=True))
    own = torch.Generator("dml:1").manual_seed(5)
    assert own.device == TWO and torch.equal(torch.rand(4, device=TWO, generator=own).cpu(), a.cpu())


def test_each_has_its_memory():
    torch.dml.synchronize(1)
    before = torch.dml.memory_allocated(0), torch.dml.memory_allocated(1)
    x = torch.empty(3 << 20, dtype=torch.uint8, device=TWO)
    assert torch.dml.memory_allocated(1) == before[1] + (3 << 20)
    assert torch.dml.memory_allocated(0) == before[0]
    del x
    torch.dml.set_per_process_memory_fraction(0.01, 1)
    try:
        assert torch.dml.get_per_process_memory_fraction(1) == 0.01
        # Each is below the maximum size of an allocation on every adapter.
        part = min(torch.dml.mem_get_info(1)[1] // 100, 1 << 30)
        torch.dml.empty_cache()
        with pytest.raises(torch.OutOfMemoryError, match="Device 1"):
            parts = [torch.empty(part, dtype=torch.uint8, device=TWO) for _ in range(8)]
        parts = [torch.empty(part, dtype=torch.uint8, device=ONE) for _ in range(8)]
        assert all(x.is_dml for x in parts)
    finally:
        torch.dml.set_per_process_memory_fraction(1.0, 1)


def test_threads_on_both():
    results: dict[int, list[float]] = {}

    def work(index: int) -> None:
        torch.dml.set_device(index)
        x = torch.full((64, 64), float(index + 1), device="dml")
        for _ in range(50):
            x = x + torch.ones_like(x)
        results[index] = [x.mean().item(), float(x.get_device())]

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: [51, 0], 1: [52, 1]}
    assert torch.dml.current_device() == 0


def test_a_model_on_two_devices():
    first, second = torch.nn.Linear(4, 8).to(ONE), torch.nn.Linear(8, 2).to(TWO)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    x, y = torch.randn(16, 4, device=ONE), torch.randn(16, 2, device=TWO)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (second(first(x).relu().to(TWO)) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("where", ["cpu", "dml:0"])
def test_data_parallel(where: str) -> None:
    torch.manual_seed(0)
    alone = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    both = torch.nn.DataParallel(copy.deepcopy(alone).to("dml"))
    assert both.device_ids[:2] == [0, 1]
    x = torch.randn(5, 3)
    found = both(x.to(where))
    assert found.device == ONE
    torch.testing.assert_close(found.cpu(), alone(x), rtol=1e-5, atol=1e-5)
    found.square().sum().backward()
    alone(x).square().sum().backward()
    for one, other in zip(both.parameters(), alone.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)


def test_data_parallel_of_a_model_on_the_cpu_is_undisturbed() -> None:
    model = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    assert torch.equal(torch.nn.DataParallel(model)(x), model(x))


def test_scatter_gather_and_reduce() -> None:
    x = torch.arange(10.0)
    pieces = comm.scatter(x.to(ONE), [0, 1], [3, 7])
    assert [piece.device for piece in pieces] == [ONE, TWO] and pieces[1].tolist() == list(range(3, 10))
    assert torch.equal(comm.gather(pieces, destination=-1), x)
    copies = comm.broadcast(x.to(TWO), [0, 1])
    assert [copy.device for copy in copies] == [ONE, TWO]
    assert torch.equal(comm.reduce_add(copies, 0).cpu(), 2 * x)
    out = torch.empty(10, device=ONE)
    assert torch.equal(comm.gather(pieces, out=out).cpu(), x)
