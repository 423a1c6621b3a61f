"""Sorting and selection by rank, compared with the CPU."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same
from tests.support.dtypes import ALL, FLOATS, INTEGERS, NUMBERS, dtypes
from tests.support.memory import allocated


def sample(*sizes, dtype=torch.float32, ties=True):
    """Elements, some of which are equal, or all different."""
    if dtype == torch.bool:
        return torch.rand(*sizes) > 0.5
    if not ties:
        count = math.prod(sizes)
        return (torch.randperm(count) - count // 2).reshape(sizes).to(dtype)
    if dtype.is_floating_point:
        return (torch.randn(*sizes) * 4).round().to(dtype) / 2
    return torch.randint(0 if dtype == torch.uint8 else -9, 9, sizes, dtype=dtype)


def with_specials(dtype=torch.float32):
    row = [1.0, math.nan, -0.0, 0.0, math.inf, -math.inf, -1.0, math.nan, 0.0, 2.5, -0.0]
    return torch.tensor([row, row[::-1], [math.nan] * len(row)], dtype=dtype)


def sorted_rows(x, dim=-1, descending=False):
    return torch.sort(x, stable=True, dim=dim, descending=descending)


def holds(x, indices, values, dim=-1):
    """Whether the values are the elements at the indices."""
    assert_same(x.gather(dim, indices.cpu()), values.cpu())


@dtypes(ALL)
def test_sort_of_dtypes(dtype):
    x = sample(5, 33, 4, dtype=dtype)
    for dim in (0, 1, -1):
        for descending in (False, True):
            assert_matches_cpu(lambda x, d=dim, r=descending: sorted_rows(x, d, r), x)
    assert_matches_cpu(lambda x: sorted_rows(x, 1), sample(2, 3000, dtype=dtype))
    assert_matches_cpu(lambda x: sorted_rows(x, 0, True), sample(2500, 2, dtype=dtype))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 255, 512, 513, 2047, 2048, 2049, 20_000])
def test_sort_of_lengths(n):
    for shape, dim in (((n,), 0), ((3, n), 1), ((n, 5), 0)):
        assert_matches_cpu(lambda x, dim=dim: sorted_rows(x, dim), torch.randn(shape))
        assert_matches_cpu(lambda x, dim=dim: sorted_rows(x, dim), torch.randint(-5, 5, shape))


@dtypes(FLOATS)
def test_sort_of_special_values(dtype):
    x = with_specials(dtype)
    for long in (x, x.repeat(1, 300)):
        for descending in (False, True):
            got = assert_matches_cpu(lambda x, r=descending: sorted_rows(x, -1, r), long)
            want = sorted_rows(long, -1, descending)
            # The zeros keep their signs.
            assert torch.equal(got[0].cpu().signbit(), want[0].signbit())


def test_sort_of_extreme_integers():
    for dtype in INTEGERS:
        info = torch.iinfo(dtype)
        x = torch.tensor([0, info.max, info.min, 1, info.max - 1, info.min + 1], dtype=dtype)
        assert_matches_cpu(lambda x: (*sorted_rows(x), *sorted_rows(x, 0, True)), x)
        assert_matches_cpu(lambda x: (*sorted_rows(x.repeat(400)), *sorted_rows(x.repeat(400), 0, True)), x)


def test_sort_of_strides_and_out():
    x = torch.randn(6, 20, 5)
    assert_matches_cpu(lambda x: x.transpose(0, 2).sort(1), x)
    assert_matches_cpu(lambda x: x[:, ::3].sort(1), x)
    assert_matches_cpu(lambda x: sorted_rows(x[:, :1].expand(6, 9, 5), 1), x)
    assert_matches_cpu(lambda x: x.to(memory_format=torch.contiguous_format)[0, 0, 0].sort(), x)

    def out(x):
        values, indices = x.new_empty(0), torch.empty(0, dtype=torch.int64, device=x.device)
        torch.sort(x, 1, out=(values, indices))
        wide = x.new_zeros(5, 6, 20).permute(1, 2, 0)
        torch.sort(x, 1, out=(wide, indices))
        own = x.clone()
        torch.sort(own, 1, out=(own, indices))
        return values, indices, wide, own

    assert_matches_cpu(out, x)
    assert_matches_cpu(lambda x: (x.argsort(1), x.argsort(1, descending=True), x.msort()), x)


def test_gradients():
    x = torch.randn(4, 30, requires_grad=True)
    weights = torch.randn(4, 30)
    assert_matches_cpu(lambda x, w: (x.sort(1)[0] * w, (x.topk(7)[0] * w[:, :7])), x, weights)
    assert_matches_cpu(lambda x: (x.kthvalue(3)[0], x.median(1)[0] * 2, x.median(), x.nanmedian(0)[0]), x)
    y = torch.randn(2, 3000, requires_grad=True)
    assert_matches_cpu(lambda y: (y.sort(1)[0] ** 2, y.topk(50)[0], y.median(1)[0]), y)


@dtypes(NUMBERS)
def test_topk_of_dtypes(dtype):
    # The algorithm depends on length and memory layout of a row; the dtype only affects
    # comparisons.
    every = (((4, 30), 1), ((30, 4), 0), ((2, 60), -1), ((3000, 2), 0), ((2, 5000), 1))
    for shape, dim in every if dtype == torch.float32 else every[1::3]:
        x = sample(*shape, dtype=dtype)
        for largest in (True, False):
            for k in (1, 7, shape[dim]):
                values, indices = x.to("dml").topk(k, dim, largest)
                assert_same(values, x.topk(k, dim, largest)[0])
                holds(x, indices, values, dim)
                assert all(len(set(row)) == k for row in indices.movedim(dim, -1).tolist())


@pytest.mark.parametrize("n", [2, 100, 2048, 2049, 10_000, 100_000])
def test_topk_of_lengths(n):
    x = torch.randperm(n) - n // 2
    for k in sorted({0, 1, min(n, 50), min(n, 2500), n}):
        assert_matches_cpu(lambda x, k=k: x.topk(k), x)
        assert_matches_cpu(lambda x, k=k: x.float().topk(k, largest=False), x)
        unsorted = x.to("dml").topk(k, sorted=False)
        assert_same(unsorted[0].sort()[0], x.topk(k)[0].sort()[0])
        holds(x, unsorted[1], unsorted[0])


def test_topk_of_special_values():
    for x in (with_specials(), with_specials().repeat(1, 250)):
        for largest in (True, False):
            assert_same(x.to("dml").topk(9, -1, largest)[0], x.topk(9, -1, largest)[0])


@dtypes(FLOATS)
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_both_zeros(dtype, largest):
    """They are equal, and keep their order; on the CPU up to four do, which it sorts by
    insertion.
    """
    for row in (
        [-0.0, 0.0],
        [0.0, -0.0],
        [-1.0, 0.0, -0.0],
        [1.0, -0.0, 0.0],
        [-0.0, 0.0, 2.0] * 20,
        [0.0, -0.0] * 1500,
    ):
        x = torch.tensor([row, row[::-1]], dtype=dtype)
        order = sorted_rows(x, descending=largest)
        for k in sorted({1, 2, len(row) // 2, len(row)} - {0}):
            values, indices = x.to("dml").topk(k, largest=largest)
            assert torch.equal(indices.cpu(), order.indices[:, :k])
            assert torch.equal(values.cpu().signbit(), order.values[:, :k].signbit())
            if len(row) < 4:
                assert torch.equal(values.cpu().signbit(), x.topk(k, largest=largest).values.signbit())


@dtypes(NUMBERS)
def test_kthvalue_and_median(dtype):
    for shape, dim in (((4, 31), 1), ((30, 4), 0), ((2, 3, 6), 1), ((2, 2501), 1), ((4000, 2), 0)):
        x = sample(*shape, dtype=dtype)
        for keep in (False, True):
            for name, extra in (("kthvalue", (shape[dim] // 3,)), ("median", ()), ("nanmedian", ())):
                values, indices = getattr(x.to("dml"), name)(*extra, dim, keep)
                want = getattr(x, name)(*extra, dim, keep)[0]
                assert_same(values, want)
                assert indices.shape == want.shape
                rows = (indices, values) if keep else (indices.unsqueeze(dim), values.unsqueeze(dim))
                holds(x, *rows, dim)
        assert_matches_cpu(lambda x: (x.median(), x.nanmedian(), x[..., ::2].median()), x)


@pytest.mark.parametrize("n", [5, 6, 3001])
def test_median_of_nan(n):
    x = torch.randperm(4 * n).reshape(4, n).float()
    x[1, [2, 4]] = math.nan
    x[2, : n - 1] = math.nan
    x[3] = math.nan
    assert_matches_cpu(lambda x: x.median(1), x)
    assert_matches_cpu(lambda x: x.nanmedian(1)[0], x)
    assert_matches_cpu(lambda x: x[:3].nanmedian(1), x)
    assert_matches_cpu(lambda x: (x.median(), x.nanmedian(), x[:, :0].median(), x[0].median(), x[3].nanmedian()), x)
    assert_matches_cpu(lambda x: x[0].kthvalue(3), x)


def test_of_scalars():
    x = torch.tensor(3.5)
    assert_matches_cpu(lambda x: (*x.sort(), *x.topk(1), *x.kthvalue(1), *x.median(0), x.median(), *x.mode()), x)


@dtypes(torch.float32, torch.float64)
def test_quantiles(dtype):
    x = torch.randn(5, 31, dtype=dtype)
    q = torch.tensor([0.0, 0.1, 0.5, 0.77, 1.0], dtype=dtype)
    # The elements between which a quantile is depend on the rounding of its product with their
    # number.
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        assert_matches_cpu(
            lambda x, q, m=method: (x.quantile(q, 1, interpolation=m), x.quantile(0.3)), x, q, widen=False
        )
        assert_matches_cpu(
            lambda x, q, m=method: x.nanquantile(q, 0, interpolation=m), x.where(x < 1, math.nan), q, widen=False
        )


@dtypes(ALL)
def test_mode(dtype):
    for shape, dim in (((4, 31), 1), ((30, 4), 0), ((2, 3, 6), 1), ((2, 2501), 1)):
        x = sample(*shape, dtype=dtype)
        for keep in (False, True):
            values, indices = x.to("dml").mode(dim, keep)
            want = x.mode(dim, keep)[0]
            assert_same(values, want)
            rows = (indices, values) if keep else (indices.unsqueeze(dim), values.unsqueeze(dim))
            holds(x, *rows, dim)
    assert_matches_cpu(lambda x: (*x.mode(0), *x.mode(1)), torch.tensor([[2, 1, 2], [3, 1, 1]]).to(dtype))


@dtypes(FLOATS)
def test_mode_of_nan(dtype):
    """NaN equals nothing, wherever it is; the CPU's mode depends on its position."""
    nan = math.nan
    for row, mode in (([2, nan, 1, 2], 2), ([nan, 1, nan, 1], 1), ([nan, nan, 3], 3), ([1, nan, 2, 1, nan, 2, 2], 2)):
        rows = torch.tensor([*itertools.islice(itertools.permutations(row), 200)], dtype=dtype)
        values, indices = (part.cpu() for part in rows.to("dml").mode(1))
        assert (values == mode).all() and torch.equal(rows.gather(1, indices[:, None])[:, 0], values)
    assert torch.full((3, 5), nan, dtype=dtype, device="dml").mode(1)[0].isnan().all()


def test_errors():
    x = torch.ones(3, 4, device="dml")
    for call, error, text in (
        (lambda: x.sort(2), IndexError, "Dimension out of range"),
        (lambda: x.topk(5), RuntimeError, "selected index k out of range"),
        (lambda: x.kthvalue(5), RuntimeError, "selected number k out of range"),
        (lambda: x[:, :0].median(1), IndexError, "non-zero size"),
        (lambda: x[:, :0].kthvalue(1), IndexError, "non-zero size"),
        (lambda: torch.sort(x, out=(x.clone(), x.clone())), RuntimeError, "Expected out tensor to have dtype"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_sorting_takes_the_memory_of_two_passes():
    x = torch.randn(1 << 20, device="dml")
    before = allocated()
    torch.dml.reset_peak_memory_stats()
    values, _indices = x.sort()
    taken = torch.dml.max_memory_allocated() - before
    assert torch.equal(values.cpu(), x.cpu().sort().values)
    # Results of 4 and 8 bytes an element, and two buffers of a key and a position in addition to
    # the first keys; a little for counts.
    assert taken <= x.numel() * (4 + 8 + 2 * (4 + 4) + 4) * 1.05
