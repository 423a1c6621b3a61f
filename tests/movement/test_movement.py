"""cat, stack, flip, roll, repeat: compared with the CPU."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import ALL, dtypes


def sample(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randint(0, 100, sizes).to(dtype)


# ---- cat


@pytest.mark.smoke
@dtypes(ALL)
def test_cat_of_every_dtype(dtype: torch.dtype):
    parts = [sample(3, 4, 8, dtype=dtype) for _ in range(3)]
    for dim in (0, 1, 2, -1):
        assert_matches_cpu(lambda *p, dim=dim: torch.cat(p, dim), *parts)
    assert_matches_cpu(lambda a, b, c: torch.cat([a[:, 1:3], b, c[:, :0]], 1), *parts)
    assert_matches_cpu(
        lambda a, b, c: torch.cat([a.transpose(0, 1)[:, :2, 1:], b.transpose(0, 1)[:, :, 1:]], 1), *parts
    )


def test_cat_promotes():
    a, b, c = sample(2, 3, dtype=torch.int32), sample(2, 3, dtype=torch.float16), sample(2, 3, dtype=torch.bool)
    for parts in ((a, b), (b, c), (a, c), (a, b, c)):
        assert_matches_cpu(lambda *p: torch.cat(p, 1), *parts)
        assert_matches_cpu(lambda *p: torch.cat(p, 0), *parts)


def test_cat_of_empty_tensors():
    x = sample(2, 3)
    assert_matches_cpu(lambda x: torch.cat([torch.empty(0, device=x.device), x]), x)
    assert_matches_cpu(lambda x: torch.cat([x, x[:0], torch.empty(0, device=x.device)]), x)
    assert_matches_cpu(lambda x: torch.cat([x[:, :0], x[:, :0]], 1), x)
    assert_matches_cpu(lambda x: torch.cat([torch.empty(0, device=x.device)] * 2), x)
    assert_matches_cpu(lambda x: torch.cat([x]), x)


@pytest.mark.parametrize("count", [15, 16, 17, 300])
def test_cat_of_many(count: int):
    parts = [sample(3, 1 + i % 4) for i in range(count)]
    assert_matches_cpu(lambda *p: torch.cat(p, 1), *parts)
    assert_matches_cpu(lambda *p: torch.cat([x.t() for x in p]), *parts)


def test_cat_keeps_channels_last():
    a, b = (
        sample(2, 3, 4, 5).to(memory_format=torch.channels_last),
        sample(2, 2, 4, 5).to(memory_format=torch.channels_last),
    )
    out = assert_matches_cpu(lambda a, b: torch.cat([a, b], 1), a, b)
    assert out.stride() == torch.cat([a, b], 1).stride()
    assert torch.cat([a.to("dml"), b.contiguous().to("dml")], 1).is_contiguous()


def test_cat_out():
    a, b = sample(2, 3), sample(2, 3)
    for out in (torch.empty(0), torch.empty(6, 2).t()[:, :6], torch.empty(2, 6, dtype=torch.float64)):
        ours = out.to("dml") if out.is_contiguous() else torch.empty(6, 2, device="dml").t()
        torch.cat([a.to("dml"), b.to("dml")], 1, out=ours)
        assert_same(ours, torch.cat([a, b], 1).to(ours.dtype))


def test_cat_errors():
    a = sample(2, 3)
    for function in (
        lambda a: torch.cat([a, a[0]]),
        lambda a: torch.cat([a, a[:, :2]]),
        lambda a: torch.cat([a, a], 2),
        lambda a: torch.cat([a[0, 0], a[0, 0]]),
        lambda a: torch.cat([a, a], out=torch.empty(4, 3, dtype=torch.int64, device=a.device)),
        lambda a: torch.cat([a, a], out=a),
    ):
        assert_same_error(function, a, words=False)
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([a.to("dml"), a])


def test_stack_and_gradients():
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda a, b, dim=dim: torch.stack([a, b], dim) * 2, a, b)
        assert_matches_cpu(lambda a, b: torch.cat([a, a * b], 1), a, b)
    assert_matches_cpu(lambda a, b: torch.hstack([a, b]), a, b)


def test_large_parts():
    """More elements than one row of workgroups."""
    a = torch.arange(1 << 15, dtype=torch.uint8).reshape(1, -1).expand(3, -1)
    assert_matches_cpu(lambda a: torch.cat([a, a[:, :77], a], 1), a)


# ---- flip, roll, repeat


@dtypes(ALL)
def test_flip_and_roll(dtype: torch.dtype):
    x = sample(3, 4, 5, dtype=dtype)
    for dims in ((0,), (1,), (-1,), (0, 2), (0, 1, 2), ()):
        assert_matches_cpu(lambda x, dims=dims: x.flip(dims), x)
    assert_matches_cpu(lambda x: x.transpose(0, 2)[1:].flip(0, 1), x)
    for shifts, dims in ((1, 0), (-2, 1), (7, 2), ((1, 2), (0, 2)), ((1, -1), (0, 0)), (3, ()), (0, 1)):
        assert_matches_cpu(lambda x, s=shifts, d=dims: x.roll(s, d), x)
    assert_matches_cpu(lambda x: x.transpose(0, 2).roll(5), x)
    assert_matches_cpu(lambda x: x.rot90(1, (0, 2)), x)


@pytest.mark.parametrize("shifts", [(0, 1), (6, 9), (7, -3), (1, 2)])
@pytest.mark.parametrize("dims", [(3, 1), (0, 3), (2, 2), (1, 0)])
@pytest.mark.parametrize("sizes", [(2, 9, 9, 6), (9, 3, 6, 1), (1, 2, 5, 3)])
def test_strides_of_roll(sizes, dims, shifts):
    """For channels-last images: a part without elements, or with one row, has no such order."""
    x = torch.arange(math.prod(sizes)).reshape(sizes).contiguous(memory_format=torch.channels_last)
    assert_same_outcome(lambda x: x.roll(shifts, dims), x)
    assert_same_outcome(lambda x: x.roll(shifts[0], dims[0]), x)


def test_flip_and_roll_of_little():
    for x in (torch.tensor(3.0), torch.zeros(0, 3), torch.ones(1)):
        assert_matches_cpu(lambda x: x.flip(0), x)
        assert_matches_cpu(lambda x: x.roll(2), x)
    for function in (
        lambda x: x.flip(0, 0),
        lambda x: x.flip(2),
        lambda x: x.roll((1, 2), 0),
        lambda x: x.roll(1, 5),
    ):
        assert_same_error(function, torch.ones(2, 2), words=False)


def test_gradients():
    x = torch.randn(3, 4, requires_grad=True)
    assert_matches_cpu(lambda x: x.flip(1) * x, x)
    assert_matches_cpu(lambda x: x.roll(1, 0) * x, x)
    assert_matches_cpu(lambda x: x.repeat(2, 3) * 2, x)
    assert_matches_cpu(lambda x: x.repeat_interleave(3, 0) * 2, x)


def test_gradient_of_unfold():
    for sizes, dim, size, step in (((7,), 0, 3, 1), ((4, 9, 3), 1, 4, 2), ((4, 9), -1, 2, 5), ((3, 8), 0, 3, 2)):
        x, weight = torch.randn(sizes, requires_grad=True), torch.randn(sizes).unfold(dim, size, step)
        assert_matches_cpu(lambda x, w, d=dim, n=size, s=step: x.unfold(d, n, s) * w, x, weight)


@dtypes(torch.int32, torch.int64)
def test_repeat_interleave(dtype: torch.dtype):
    repeats = torch.tensor([2, 0, 3, 1], dtype=dtype)
    assert_matches_cpu(torch.repeat_interleave, repeats)
    assert_matches_cpu(lambda r: torch.repeat_interleave(r, output_size=6), repeats)
    assert_matches_cpu(lambda x, r: x.repeat_interleave(r, 1), sample(3, 4), repeats)
    assert_matches_cpu(torch.repeat_interleave, torch.randint(0, 4, (3_000,), dtype=dtype))
    assert_matches_cpu(torch.repeat_interleave, torch.zeros(3, dtype=dtype))
    assert_matches_cpu(torch.repeat_interleave, torch.zeros(0, dtype=dtype))
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(torch.tensor([1, -1], dtype=dtype, device="dml"))


def test_repeat_and_tile():
    x = sample(2, 3)
    assert_matches_cpu(lambda x: x.repeat(2, 1, 3), x)
    assert_matches_cpu(lambda x: x.tile(2, 2), x.t())
    assert_matches_cpu(lambda x: x.repeat(0, 1), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.float16, torch.int64])
def test_cat_of_many_pieces(dtype: torch.dtype) -> None:
    """Parts with rows of several lengths, and some that do not consist of contiguous rows."""
    for dim, shape in [(0, (3, 5)), (1, (3, 4)), (1, (2, 8, 4)), (0, (7,)), (-1, (4, 1))]:
        pieces = [sample(*shape, dtype=dtype).narrow(dim, 0, 1 + i % shape[dim]) for i in range(40)]
        assert_same_outcome(lambda *pieces, d=dim: torch.cat(pieces, d), *pieces)
    turned = [
        sample(3, 4, 2, dtype=dtype).transpose(0, 2) if i % 3 else sample(2, 4, 3, dtype=dtype) for i in range(30)
    ]
    assert_same_outcome(lambda *pieces: torch.cat(pieces), *turned)


def test_cat_of_a_thousand_pieces() -> None:
    pieces = [torch.randn(1 + i % 7, 3) for i in range(1100)]
    assert_same_outcome(lambda *pieces: torch.cat(pieces), *pieces)
    assert_same_outcome(lambda *pieces: torch.stack([p[:1] for p in pieces], 1), *pieces)
    assert_same_outcome(lambda x: torch.cat(x.unbind(), 0), torch.randn(1000, 8, 2))
    large = [torch.randn(1000), *(torch.randn(3) for _ in range(20)), torch.randn(70_001)]
    assert_same_outcome(lambda *pieces: torch.cat(pieces), *large)
