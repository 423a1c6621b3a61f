"""Copies: dtypes, devices, strides, and reading single elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch_dml.engine import queue_stats

from tests.support.compare import assert_matches_cpu, assert_same
from tests.support.dtypes import ALL, FLOATS, dtypes


@pytest.mark.smoke
@pytest.mark.parametrize("source", ALL, ids=str)
def test_casts_in_every_direction(source: torch.dtype) -> None:
    x = torch.tensor([0, 1, 2, 3, 100, 1, 7, 0, 5]).to(source)
    ours = x.to("dml")
    for target in ALL:
        expected = x.to(target)
        assert_same(ours.to(target), expected)
        assert_same(x.to("dml", target), expected)
        assert_same(ours.to("cpu", target), expected)
        into = torch.empty(9, dtype=target, device="dml")
        assert_same(into.copy_(ours), expected)
        assert_same(into.copy_(x), expected)
        assert_same(torch.empty(9, dtype=target).copy_(ours), expected)


def test_casts_round_and_wrap() -> None:
    x = torch.tensor(
        [0.0, -0.0, 1.9, -1.9, 65504, 65520, 1e-8, 6e-8, 3.14159, float("inf"), -float("inf"), float("nan")]
    )
    for target in (torch.float16, torch.bfloat16, torch.float64, torch.bool):
        assert_same(x.to("dml").to(target), x.to(target), 0, 0)
    every = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.int16)
    for half in (torch.float16, torch.bfloat16):
        bits = every.view(half)
        assert_same(bits.to("dml").float(), bits.float(), 0, 0)
        assert torch.equal(bits.to("dml").cpu().view(torch.int16), every)
    n = torch.tensor([300, -1, 128, 2**31, 2**40 + 5, -(2**33)])
    for target in (torch.uint8, torch.int8, torch.int16, torch.int32):
        assert_same(n.to("dml").to(target), n.to(target))
    y = torch.tensor([-3.7, 0.2, 3.7, 100.9])
    for target in (torch.int8, torch.int32, torch.int64):
        assert_same(y.to("dml").to(target), y.to(target))


def layouts(x: torch.Tensor) -> list[torch.Tensor]:
    """Views of sizes [4, 3, 5] of a tensor of sizes [8, 6, 10]."""
    return [
        x[:4, :3, :5],
        x[::2, ::2, ::2],
        x.permute(2, 0, 1)[2:6, 1:4, :5],
        x.transpose(0, 2)[::3, 1:4, :5],
        x[:4, 1:2, :5].expand(4, 3, 5),
        x[:4, :3, :5].contiguous(),
    ]


@dtypes(torch.float32, torch.uint8, torch.float16, torch.int64)
def test_strides_on_both_sides(dtype: torch.dtype) -> None:
    x = torch.arange(480).reshape(8, 6, 10).to(dtype)
    ours = x.to("dml")
    for i, source in enumerate(layouts(x)):
        assert_same(layouts(ours)[i].cpu(), source)
        assert_same(source.to("dml"), source)
        for j in (0, 1, 2, 3, 5):
            expected = layouts(torch.zeros_like(x))[j].copy_(source)
            for other in (source, layouts(ours)[i]):
                target = torch.zeros_like(x).to("dml")
                assert_same(layouts(target)[j].copy_(other), expected)
            target = torch.zeros_like(x)
            assert_same(layouts(target)[j].copy_(layouts(ours)[i]), expected)


def test_only_the_view_is_written() -> None:
    target = torch.zeros(4, 6, device="dml")
    target[1:3, ::2] = torch.ones(2, 3)
    expected = torch.zeros(4, 6)
    expected[1:3, ::2] = 1
    assert_same(target, expected)


def test_copies_broadcast() -> None:
    target = torch.zeros(3, 4, device="dml")
    assert_same(target.copy_(torch.arange(4.0)), torch.arange(4.0).expand(3, 4))
    assert_same(target.copy_(torch.ones(3, 1, device="dml")), torch.ones(3, 4))
    assert_same(target.copy_(torch.tensor(2)), torch.full((3, 4), 2.0))
    with pytest.raises(RuntimeError, match=r"4.*must match.*5|5.*must match.*4"):
        target.copy_(torch.ones(5, device="dml"))
    for shape, source in (((5,), (1, 1, 5)), ((1, 5), (3, 5)), ((), (1,))):
        for device in ("cpu", "dml"):
            with pytest.raises(
                RuntimeError, match=r"output with shape \[.*\] doesn't match the broadcast shape \[.*\]"
            ):
                torch.zeros(shape, device="dml").copy_(torch.ones(source, device=device))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1, device="dml").expand(3).copy_(torch.ones(3, device="dml"))


@pytest.mark.parametrize("n", [0, 1, 3, 255, 257, 1000, 70_000])
def test_sizes_and_offsets(n: int) -> None:
    for dtype in (torch.uint8, torch.int16, torch.float32, torch.float64):
        x = torch.arange(n + 5).to(dtype)
        y = x.to("dml")
        for offset in (0, 1, 5):
            assert_same(y[offset : offset + n].clone(), x[offset : offset + n])
            assert_same(y[offset : offset + n], x[offset : offset + n])
            z = torch.zeros(n + 5, dtype=dtype, device="dml")
            z[offset : offset + n] = x[offset : offset + n]
            assert_same(z[offset : offset + n], x[offset : offset + n])


def test_large_copies() -> None:
    x = torch.randint(0, 255, (33_000_001,), dtype=torch.uint8)
    assert torch.equal(x.to("dml").cpu(), x)
    assert torch.equal(x.to("dml")[1:].clone().cpu(), x[1:])


def test_order_without_blocking() -> None:
    x = torch.zeros(1000)
    y = x.to("dml", non_blocking=True)
    x.fill_(7)
    assert_same(y, torch.zeros(1000))
    for i in range(20):
        y.copy_(torch.full((1000,), float(i)), non_blocking=True)
        y += 1
    host = y.to("cpu", non_blocking=True)
    torch.dml.synchronize()
    assert_same(host, torch.full((1000,), 20.0))


@dtypes(ALL)
def test_items(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 5]).to(dtype)
    y = x.to("dml")
    assert [v.item() for v in y] == [v.item() for v in x]
    assert y.tolist() == x.tolist()
    assert type(y[1].item()) is type(x[1].item())
    assert bool(y[1]) is True
    with pytest.raises(RuntimeError):
        y.item()


def test_memory_formats() -> None:
    x = torch.randn(2, 3, 4, 5)
    for format in (torch.contiguous_format, torch.channels_last, torch.preserve_format):
        for source in (x, x.contiguous(memory_format=torch.channels_last), x.transpose(1, 3)):
            ours = source.to("dml")
            assert ours.stride() == source.to("cpu", copy=True).stride()
            assert_same(ours.clone(memory_format=format), source)
            assert ours.clone(memory_format=format).stride() == source.clone(memory_format=format).stride()


def test_lazy_bits() -> None:
    x = torch.randn(3, 4)
    ours = x.to("dml")
    assert_same(torch._neg_view(x).to("dml"), -x)
    assert_same(torch._neg_view(ours).cpu(), -x)
    target = torch.zeros(3, 4, device="dml")
    assert_same(target.copy_(torch._neg_view(ours)), -x)
    z = torch.randn(5, dtype=torch.complex64)
    assert torch.equal(z.to("dml").cpu(), z)
    assert torch.equal(z.conj().to("dml").cpu().resolve_conj(), z.conj().resolve_conj())


def costs(work: Callable[[], object], times: int = 10) -> dict[str, float]:
    """Queue statistics of one call, when nothing else is pending."""
    work()
    torch.accelerator.synchronize()
    before = queue_stats()
    for _ in range(times):
        work()
    return {name: (count - before[name]) / times for name, count in queue_stats().items()}


def test_reading_a_few_bytes_waits_once() -> None:
    x, y = torch.arange(16.0, device="dml"), torch.ones(16, device="dml")
    reads: dict[str, Callable[[], object]] = {
        "item": lambda: x[3].item(),
        "item of a sum": lambda: (x + y)[0].item(),
        "tolist": lambda: (x * y).tolist(),
        "strided": lambda: x[::2].cpu(),
        "bool": lambda: bool((x > 1).any()),
        "nonzero": lambda: x.nonzero(),
        "masked_select": lambda: x.masked_select(x > 3),
        "unique": lambda: x.unique(),
        "bincount": lambda: torch.bincount(x.long()),
    }
    for name, read in reads.items():
        cost = costs(read)
        assert cost["waits"] == 1, (name, cost)
        # One for the read; and if the host is too busy to enqueue the next command in time, one for
        # each command before it.
        assert cost["submits"] <= cost["commands"] + 1, (name, cost)
    assert costs(reads["item"])["barriers"] == 0
    assert costs(reads["item of a sum"])["barriers"] == 1


def test_small_uploads_have_no_submit_of_their_own() -> None:
    host = torch.arange(500.0)
    uploads: dict[str, Callable[[], object]] = {
        "tensor": lambda: torch.tensor(1.5, device="dml"),
        "list": lambda: torch.tensor([1, 2, 3], device="dml"),
        "to": lambda: host.to("dml"),
    }
    for name, upload in uploads.items():
        cost = costs(upload, 40)
        assert cost["commands"] == 1 and cost["waits"] == 0, (name, cost)
        # Together with other pending work; if the host is too busy to enqueue more in time, there
        # is none.
        assert cost["submits"] <= 1, (name, cost)


def test_an_event_before_a_read_is_reached() -> None:
    x = torch.ones(4, device="dml")
    for _ in range(20):
        x.add_(1)
        event = torch.Event("dml")
        event.record()
        x[0].item()
        assert event.query()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool], ids=str)
def test_copies_from_and_to_cuda(dtype: torch.dtype) -> None:
    x = (torch.arange(60) % 7).to(dtype).reshape(5, 12)
    ours, theirs = x.to("dml"), x.cuda()
    assert torch.equal(ours.cuda().cpu(), x) and torch.equal(theirs.to("dml").cpu(), x)
    for one, other in ((ours, theirs), (theirs, ours)):
        into = torch.zeros(2, 12, 5, dtype=dtype, device=other.device)
        assert torch.equal(into.copy_(one.t()).cpu(), x.t().expand(2, 12, 5))  # broadcast, transposed
        into = torch.zeros(12, 10, dtype=dtype, device=other.device)
        into[:, ::2].copy_(one.t())
        assert torch.equal(into[:, ::2].cpu(), x.t())
    assert torch.equal(ours.to("cuda", torch.bfloat16).cpu(), x.to(torch.bfloat16))


@dtypes(FLOATS)
def test_floats_that_no_integer_holds(dtype):
    """On every adapter they become the least integer, as on x86, and so does NaN."""
    numbers = [math.nan, math.inf, -math.inf, 3e9, -3e9, 5e9, 1e20, -1e20, 2.0**63, 300.5, -1.5, -300.0, 70_000.0]
    x = torch.tensor(numbers, dtype=torch.float64).to(dtype)
    for to in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        assert_matches_cpu(lambda x, to=to: x.to(to), x)
