"""Pinned memory: host memory that the device copies from and to by itself."""

from __future__ import annotations

import time

import pytest
import torch

from tests.support.dtypes import dtypes

MIB = 1 << 20


def test_what_is_pinned():
    plain = torch.arange(1000.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned() and pinned[3:].is_pinned() and not plain.is_pinned()
    assert pinned.device.type == "cpu" and torch.equal(pinned, plain)
    assert pinned.pin_memory() is pinned
    if not torch.cuda.is_available():  # which torch prefers to every other device
        assert torch.empty(5, pin_memory=True).is_pinned() and torch.zeros_like(pinned, pin_memory=True).is_pinned()
    assert not torch.ones(2, device="dml").is_pinned() and not torch.empty(0).is_pinned()
    assert torch.ones(3).untyped_storage().pin_memory("dml").is_pinned("dml")
    with pytest.raises(RuntimeError, match="dense CPU"):
        torch.ones(2, device="dml").pin_memory()
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="dml", pin_memory=True)


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 1000, 16384, 16385, 3_000_001])
@dtypes(torch.float32, torch.uint8, torch.int64)
def test_round_trip(count, dtype, non_blocking):
    data = torch.arange(count, dtype=torch.int64).remainder(251).to(dtype).pin_memory()
    there = data.to("dml", non_blocking=non_blocking)
    back = torch.zeros(count, dtype=dtype).pin_memory()
    back.copy_(there, non_blocking=non_blocking)
    if non_blocking:
        torch.dml.synchronize()
    assert torch.equal(back, data)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_parts_casts_and_strides(non_blocking):
    data = torch.arange(200_000.0).pin_memory()
    for host in (data[5:], data.view(400, 500).t(), data[::3], data.view(400, 500)[:, 7:]):
        there = host.to("dml", non_blocking=non_blocking)
        assert torch.equal(there.cpu(), host)
        assert torch.equal(host.to("dml", torch.float16, non_blocking=non_blocking).cpu(), host.half())
        target = torch.zeros_like(data).pin_memory().view(-1)[: host.numel()].view(host.shape)
        target.copy_(there.t().contiguous().t() if there.dim() == 2 else there, non_blocking=non_blocking)
        torch.dml.synchronize()
        assert torch.equal(target, host)
    half = torch.zeros(200_000, dtype=torch.float16).pin_memory()
    half.copy_(data.to("dml"), non_blocking=non_blocking)
    torch.dml.synchronize()
    assert torch.equal(half, data.half())


@pytest.mark.skipif(torch.cuda.is_available(), reason="beside CUDA torch makes the copy in CUDA's pinned memory")
def test_to_cpu_without_blocking_gives_pinned_memory():
    x = torch.arange(1 << 18, device="dml")
    y = x.to("cpu", non_blocking=True)
    event = torch.dml.current_stream().record_event()
    event.synchronize()
    assert y.is_pinned() and torch.equal(y, torch.arange(1 << 18))


def test_a_copy_that_does_not_block_returns_before_it_is_done():
    host = torch.ones(64 * MIB, dtype=torch.uint8).pin_memory()
    there = torch.empty(64 * MIB, dtype=torch.uint8, device="dml")
    calls, whole = [], []
    for _ in range(5):
        torch.dml.synchronize()
        began = time.perf_counter()
        there.copy_(host, non_blocking=True)
        calls.append(time.perf_counter() - began)
        torch.dml.synchronize()
        whole.append(time.perf_counter() - began)
    assert min(calls) < min(whole) / 2
    assert there.sum(dtype=torch.int64).item() == 64 * MIB


def test_work_in_order_around_copies():
    """A copy is ordered after the kernels before it and before those after it, in both
    directions.
    """
    host = torch.zeros(MIB, dtype=torch.int32).pin_memory()
    x = torch.zeros(MIB, dtype=torch.int32, device="dml")
    results = []
    for _ in range(5):
        x += 1
        results.append(x.to("cpu", non_blocking=True))
        x += 10
    torch.dml.synchronize()
    for step, result in enumerate(results):
        assert result.eq(11 * step + 1).all()
    for step in range(5):
        host.fill_(step)
        x.copy_(host, non_blocking=True)
        y = x * 2
        torch.dml.synchronize()
        assert y.eq(2 * step).all().item()


def test_freed_memory_is_reused_after_its_copy():
    targets = []
    for step in range(30):
        host = torch.full((MIB,), step, dtype=torch.uint8).pin_memory()
        targets.append(host.to("dml", non_blocking=True))
        del host  # the copy may be in progress
    for step, target in enumerate(targets):
        assert target.eq(step).all().item()


def test_freed_result_memory_is_not_written_later():
    x = torch.full((4 * MIB,), 7, dtype=torch.uint8, device="dml")
    for _ in range(10):
        x.to("cpu", non_blocking=True)  # dropped while the copy is in progress
        fresh = torch.full((4 * MIB,), 3, dtype=torch.uint8, pin_memory=True)
        torch.dml.synchronize()
        assert fresh.eq(3).all()


def test_cache_and_figures():
    torch.dml.synchronize()
    torch.dml.empty_host_cache()
    torch.dml.reset_peak_host_memory_stats()
    torch.dml.reset_accumulated_host_memory_stats()
    before = torch.dml.host_memory_stats()
    held = torch.empty(3 * MIB, dtype=torch.uint8).pin_memory()
    address = held.data_ptr()
    stats = torch.dml.host_memory_stats()
    assert stats["active_bytes.current"] - before["active_bytes.current"] == 3 * MIB
    assert stats["active_requests.current"] - before["active_requests.current"] == 1
    assert stats["allocated_bytes.current"] >= stats["active_bytes.current"]
    assert stats["num_host_alloc"] == 1
    del held
    assert torch.empty(3 * MIB, dtype=torch.uint8).pin_memory().data_ptr() == address  # kept and reused
    stats = torch.dml.host_memory_stats()
    assert stats["active_bytes.current"] == before["active_bytes.current"]
    assert stats["active_bytes.peak"] == before["active_bytes.current"] + 3 * MIB
    assert stats["num_host_alloc"] == 1
    torch.dml.empty_host_cache()
    assert torch.dml.host_memory_stats()["allocated_bytes.current"] < 20 * MIB + before["allocated_bytes.current"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="beside CUDA torch asks CUDA for pinned memory")
def test_more_than_there_is():
    with pytest.raises(torch.OutOfMemoryError, match="pin"):
        torch.empty(1 << 50, dtype=torch.uint8, pin_memory=True)


def test_with_the_other_device():
    host = torch.arange(MIB).pin_memory()
    x = host.to("dml:1", non_blocking=True)
    back = x.to("cpu", non_blocking=True)
    torch.dml.synchronize(1)
    assert torch.equal(back, host)
    with torch.dml.device(1):
        second = torch.arange(MIB).pin_memory()
    assert second.is_pinned() and torch.equal(second.to("dml:0", non_blocking=True).cpu(), host)
