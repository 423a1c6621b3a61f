"""Index tensors, masks, gather and scatter, nonzero, embeddings: compared with the CPU."""

from __future__ import annotations

import math
import re

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import ALL, FLOATS, dtypes
from tests.support.environment import TORCH


def sample(*sizes: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    """Small integers, so that sums are exact in every dtype."""
    values = (
        torch.randint(0, 2, sizes)
        if dtype == torch.bool
        else torch.randint(0 if dtype == torch.uint8 else -4, 5, sizes)
    )
    return values.to(dtype).requires_grad_(grad)


def indices(high: int, *sizes: int, negative: bool = False) -> torch.Tensor:
    return torch.randint(-high if negative else 0, high, sizes)


# ---- index


@pytest.mark.smoke
@dtypes(ALL)
def test_index_of_every_dtype(dtype: torch.dtype):
    x, i, j = sample(5, 6, 8, dtype=dtype), indices(5, 4, negative=True), indices(6, 3, 1, negative=True)
    assert_matches_cpu(lambda x, i: x[i], x, i)
    assert_matches_cpu(lambda x, i, j: x[i, j], x, i, j)
    assert_matches_cpu(lambda x, m: x[m], x, sample(5, 6, 8, dtype=torch.bool))


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_places_of_index_tensors(kind: torch.dtype):
    x = sample(4, 5, 6, 7).transpose(1, 3)
    i, j = indices(4, 3, 1, negative=True).to(kind), indices(4, 2, negative=True).to(kind)
    for pick in (
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[..., i],
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[:, i, j],
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[i, None, :, j],
        lambda x, i, j: x[1:3, i, ::2, j],
        lambda x, i, j: x[i, j, i, j],
        lambda x, i, j: x[None, i, ..., 2],
        lambda x, i, j: x[:, 1, i],
        lambda x, i, j: x[i[0, 0]],
        lambda x, i, j: x[[0, 2], :, [1, 3]],
    ):
        assert_matches_cpu(pick, x, i, j)


def test_masks():
    x, wide = sample(4, 5, 6), sample(4, 5, dtype=torch.bool)
    assert_matches_cpu(lambda x, m: x[m], x, wide)
    assert_matches_cpu(lambda x, m: x[m, 1:4], x, wide)
    assert_matches_cpu(lambda x, m: x[:, m.t()], x.transpose(0, 2).contiguous(), wide)
    assert_matches_cpu(lambda x, m: x[m[0], :, 2], x.transpose(0, 1), wide)
    assert_matches_cpu(lambda x, m: x[1, m[0], [0]], x, wide)
    assert_matches_cpu(lambda x: x[x > 100], x)
    assert_matches_cpu(lambda x: x[torch.tensor(True, device=x.device)], x)
    assert_matches_cpu(lambda x: x[True, 1], x)
    assert_matches_cpu(lambda x, m: x[m], sample(0, 3), sample(0, 3, dtype=torch.bool))
    with pytest.warns(UserWarning, match="uint8"):
        assert_same(x.to("dml")[wide.to(torch.uint8).to("dml")], x[wide])


def test_index_tensors_on_the_cpu():
    x, i = sample(5, 6), indices(5, 4, negative=True)
    assert_same(x.to("dml")[i], x[i])
    assert_same(x.to("dml")[i.to(torch.int32)[::2]], x[i[::2]])
    assert_same(x.to("dml")[x > 0], x[x > 0])
    ours = x.to("dml")
    ours[i] = 7.0
    x[i] = 7.0
    assert_same(ours, x)


def test_empty_and_0_dim():
    x = sample(3, 4)
    nothing = torch.zeros(0, dtype=torch.int64)
    for i in (nothing, nothing.reshape(0, 2)):
        assert_matches_cpu(lambda x, i: x[i], x, i)
        assert_matches_cpu(lambda x, i: x[:, i], x, i)
    assert_matches_cpu(lambda x, i: x[:, i], sample(0, 4), indices(4, 3))
    assert_matches_cpu(lambda x, i: x[i], sample(4), torch.tensor(2))
    assert_matches_cpu(lambda x: x[()], torch.tensor(3.0))
    assert_matches_cpu(lambda x, i: x[i], sample(4, 0), indices(4, 3))


def test_index_out():
    x, i = sample(5, 6), indices(5, 3)
    out = torch.empty(3, 6, device="dml").t().contiguous().t()
    torch.ops.aten.index.Tensor_out(x.to("dml"), [i.to("dml")], out=out)
    assert_same(out, x[i])


def test_wide_rows():
    """Rows that are copied 16, 8 and 4 bytes at a time, and element by element."""
    for columns in (32, 6, 5):
        for dtype in (torch.float32, torch.float16, torch.uint8, torch.float64):
            x = torch.arange(9 * columns).reshape(9, columns).to(dtype)
            assert_matches_cpu(lambda x, i: x[i], x, indices(9, 20, negative=True))
            assert_matches_cpu(lambda x, i: x[1:][:, 1:][i], x, indices(8, 20))


def test_gradient_of_index():
    assert_matches_cpu(lambda x, i: x[i] * x[i].detach(), torch.randn(5, 6, requires_grad=True), indices(5, 12))
    assert_matches_cpu(
        lambda x, i, j: x[i, :, j], torch.randn(5, 3, 6, requires_grad=True), indices(5, 9), indices(6, 9)
    )
    assert_matches_cpu(lambda x, m: x[m] * 2, torch.randn(5, 6, requires_grad=True), sample(5, 6, dtype=torch.bool))
    assert_matches_cpu(lambda x: x[1, 2] * x[:, 3:], torch.randn(5, 6, requires_grad=True))


# ---- assignment


def assign(statement: str):
    def run(x, *values):
        x = x.clone()
        exec(statement, {"x": x, "v": values, "torch": torch})
        return x

    return run


@pytest.mark.smoke
@dtypes(ALL)
def test_assignment_of_every_dtype(dtype: torch.dtype):
    x, i = sample(5, 8, dtype=dtype), torch.tensor([3, -4, 0])  # no duplicates, which could be written in any order
    assert_matches_cpu(assign("x[1, 2] = 1; x[-1, 0] = x[0, 0]"), x)
    assert_matches_cpu(assign("x[v[0]] = 1"), x, i)
    assert_matches_cpu(assign("x[v[0], 1:3] = v[1]"), x, i, sample(2, dtype=dtype))
    assert_matches_cpu(assign("x[:, v[0]] = v[1]"), x, i, sample(5, 3, dtype=dtype))
    assert_matches_cpu(assign("x[v[0]] = 1"), x, sample(5, 8, dtype=torch.bool))
    m = sample(5, 8, dtype=torch.bool)
    assert_matches_cpu(assign("x[v[0]] = v[1]"), x, m, sample(int(m.sum()), dtype=dtype))


def test_assignment():
    x, i, j = sample(4, 5, 6), torch.tensor([[0], [2]]), torch.tensor([1, 3, -1])
    for statement in (
        "x[1] = 3",
        "x[..., 2] = v[2][1:]",
        "x[1:3, ::2] = 5",
        "x[v[0], v[1]] = v[2]",
        "x[v[0], :, v[1]] = 8.5",
        "x[:, v[1]] = torch.tensor(2.0)",
        "x[:, v[1], 1:4] = v[2][:3]",
        "x[x > 1] = -x[x > 1]",
        "x[x > 1] = torch.tensor(4.0, device=x.device)",
        "x[v[2][:4] > 0] = 9",
        "x[:, :, v[2] > 0] = 9",
        "x[0] = x[1]",
        "x[v[1]] += 1",
        "x.transpose(0, 2)[v[1]] = v[2][:5, None]",
        "x[v[1][:0]] = 1",
    ):
        assert_matches_cpu(assign(statement), x, i, j, torch.tensor([1.0, -2, 3, -4, 5, 6]))


@dtypes(ALL)
def test_accumulation(dtype: torch.dtype):
    x, i, j = sample(5, 6, 3, dtype=dtype), indices(5, 40, negative=True), indices(6, 40)
    assert_matches_cpu(lambda x, i, v: x.index_put((i,), v, accumulate=True), x, i, sample(40, 6, 3, dtype=dtype))
    assert_matches_cpu(lambda x, i, j, v: x.index_put((i, j), v, accumulate=True), x, i, j, sample(1, dtype=dtype))
    assert_matches_cpu(
        lambda x, j, v: x.transpose(0, 2).index_put((j[:, :1], j[0]), v, accumulate=True),
        x,
        indices(3, 3, 40),
        sample(3, 40, 5, dtype=dtype),
    )


@pytest.mark.parametrize("count,places", [(3_000, 1), (5_000, 17), (20_000, 300_000)])
def test_accumulation_of_many(count: int, places: int):
    """Many contributions are sorted. Their order is that of the index, so that rounding is the same
    as the CPU's.
    """
    i, v = indices(places, count), torch.randn(count)
    ours = torch.zeros(places, device="dml").index_put((i.to("dml"),), v.to("dml"), accumulate=True)
    again = torch.zeros(places, device="dml").index_put((i.to("dml"),), v.to("dml"), accumulate=True)
    assert torch.equal(ours.cpu(), again.cpu())
    exact = torch.zeros(places, dtype=torch.float64).index_put((i,), v.double(), accumulate=True)
    torch.testing.assert_close(ours.cpu().double(), exact, rtol=1e-5, atol=1e-4)


def test_take_along_an_empty_dimension():
    for shape, index, dim in (((0, 3), (0, 3), 0), ((3, 0), (3, 0), 1), ((0, 3), (0, 1), 1), ((0, 3), (2, 3), 0)):
        assert_same_outcome(
            lambda x, i, dim=dim: torch.take_along_dim(x, i, dim), torch.zeros(shape), torch.zeros(index).long()
        )


# ---- errors


def test_wrong_arguments():
    x, i = sample(3, 4), torch.tensor([0, 1])
    for function in (
        lambda x, i: x[i, i, i],
        lambda x, i: x[i.float()],
        lambda x, i: x[torch.tensor([True, False], device=x.device)],
        lambda x, i: x[i, torch.tensor([0, 1, 2], device=x.device)],
        lambda x, i: x.index_put((i,), x[0, :3]),
        lambda x, i: x.index_put((i,), x.long()),
        lambda x, i: x.gather(0, i),
        lambda x, i: x.gather(0, x),
        lambda x, i: x.gather(2, i),
        lambda x, i: x.gather(1, i.expand(5, 2)),
        lambda x, i: x.scatter(0, i, x),
        lambda x, i: x.scatter(0, i.expand(3, 2), x.long()),
        lambda x, i: x.scatter_reduce(0, i.expand(3, 2), x, "median"),
        lambda x, i: x.index_select(0, i.expand(2, 2)),
        lambda x, i: x.index_select(0, x[0]),
        lambda x, i: x.index_add(0, i, x),
        lambda x, i: x.index_add(0, i, x[:2, :3]),
        lambda x, i: x.index_copy(0, i, x),
        lambda x, i: x.index_copy(0, i, x[:2, :3]),
        lambda x, i: x.index_copy(0, i.int(), x[:2]),
        lambda x, i: torch.index_copy(x[0, 0], 0, i[:0], x[0, 0], out=x.int()[0]),
        lambda x, i: x.index_reduce(0, i, x[:2], "sum"),
        lambda x, i: x.index_fill(0, i.int(), 1.0),
        lambda x, i: x.take(i.int()),
        lambda x, i: x.put(i, x),
        lambda x, i: x.masked_select(i),
        lambda x, i: x.masked_scatter(x > -100, x[0]),
        lambda x, i: x.expand(2, 3, 4).scatter_(0, i[:, None, None], 1.0),
        lambda x, i: torch.scatter(x, 0, i[:, None], 1.0, out=x[:1, :1].expand(6, 1)),
        lambda x, i: torch.ops.aten.index.Tensor(x, []),
        lambda x, i: torch.ops.aten._index_put_impl_(x, [], x[0, 0]),
        lambda x, i: torch.ops.aten._index_put_impl_(x[0, 0], [], x[0]),
        lambda x, i: x[0].index_add(0, i, x[0, 0]),
        lambda x, i: x[0].index_reduce(0, i, x[0, 0], "amax"),
    ):
        assert_same_error(function, x, i, words=False)


def test_one_value_under_a_mask_is_converted():
    x, mask = sample(3, 4), sample(3, 4, dtype=torch.bool)
    for value in (torch.tensor(7), torch.tensor([7.5], dtype=torch.float64), torch.tensor(True)):
        assert_same_outcome(lambda x, m, v: x.clone().index_put_((m,), v), x, mask, value)
        assert_same_outcome(lambda x, m, v: x.int().index_put_((m,), v), x, mask, value)


FILLED = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32)


@pytest.mark.parametrize("dtype", FILLED, ids=str)
def test_values_that_do_not_fit_are_refused(dtype: torch.dtype):
    """Also those of device tensors, which the kernel checks: at the dtype's limits, and beyond."""
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    given = [torch.tensor(number) for number in (300, -200, 70000, 2**31, -(2**31) - 1, 255, -256, 1)]
    largest = math.nextafter(2.0**63, 0) if dtype == torch.int64 else limits.max
    given += [torch.tensor(number, dtype=torch.float64) for number in (limits.min, largest, 0.5, -0.5)]
    given += [torch.tensor(float(limits.max) * 1.01, dtype=torch.float64)]
    given += [torch.tensor(number) for number in (3e9, 1e19, -1e19, 3e38, float("inf"), float("nan"))]
    given += [torch.tensor(65504.0).half(), torch.tensor(True)]
    x, mask, index = torch.ones(3, dtype=dtype), torch.tensor([True, False, True]), torch.tensor([1])
    for value in given:
        for fill in (
            lambda x, m, i, v: x.masked_fill(m, v),
            lambda x, m, i, v: x.index_fill(0, i, v),
            lambda x, m, i, v: x.clone().index_put_((m,), v),
        ):
            try:
                wanted = fill(x, mask, index, value)
            except RuntimeError as error:
                with pytest.raises(RuntimeError, match=re.escape(str(error).splitlines()[0])):
                    fill(*(t.to("dml") for t in (x, mask, index, value)))
                    torch.dml.synchronize()
            else:
                assert_same(fill(*(t.to("dml") for t in (x, mask, index, value))), wanted)


@pytest.mark.parametrize(
    "number", [2.0**63, torch.tensor(2.0**63), torch.tensor(2.0**63, dtype=torch.float64)], ids=str
)
def test_two_to_the_63_does_not_fit(number):
    """Nor on the CPU from torch 2.14 on; earlier it became the least integer."""
    value = number.to("dml") if isinstance(number, torch.Tensor) else number
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        torch.ones(3, dtype=torch.int64, device="dml").masked_fill(torch.ones(3, dtype=torch.bool, device="dml"), value)
        torch.dml.synchronize()


def test_expanded_tensors():
    """They are written with a warning."""
    for device in ("cpu", "dml"):
        x, i = torch.zeros(3, device=device), torch.tensor([1], device=device)
        with pytest.warns(UserWarning, match="expanded"):
            x.expand(2, 3)[:, i] = 1.0
        assert x.tolist() == [0, 1, 0]


OUT_OF_RANGE = {
    "index": lambda x, i: x[i],
    "second": lambda x, i: x[torch.zeros_like(i), i],
    "put": lambda x, i: x.index_put((i,), x[0]),
    "number": lambda x, i: x.index_put((i,), torch.tensor(1.0)),
    "accumulate": lambda x, i: x.index_put((i,), x[0], accumulate=True),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], x),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "take": lambda x, i: x.take(i),
    "put_": lambda x, i: x.put(i, x[0, :2]),
    "embedding": lambda x, i: F.embedding(i, x),
}


@pytest.mark.parametrize("bad", [100, -101, 2**40, -(2**40)])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_out_of_range(name: str, bad: int):
    """Raises, and the device still works."""
    x = sample(3, 4).to("dml")
    error = RuntimeError if name.startswith(("gather", "scatter")) else IndexError
    with pytest.raises(error, match=f"index {bad} is out of bounds"):
        OUT_OF_RANGE[name](x, torch.tensor([1, bad], device="dml"))
        torch.dml.synchronize()
    assert_same(x[[0, 1]], x.cpu()[[0, 1]])


@pytest.mark.parametrize("bad", [100, -101, -(2**31)])
@pytest.mark.parametrize("name", sorted(set(OUT_OF_RANGE) - {"take", "put_", "index_copy", "index_fill"}))
def test_int32_out_of_range(name: str, bad: int):
    x = sample(3, 4).to("dml")
    error = RuntimeError if name.startswith(("gather", "scatter")) else IndexError
    with pytest.raises(error, match=f"index {bad} is out of bounds"):
        OUT_OF_RANGE[name](x, torch.tensor([1, bad], device="dml", dtype=torch.int32))
        torch.dml.synchronize()
    assert_same(x[[0, 1]], x.cpu()[[0, 1]])


def test_out_of_range_writes_nothing():
    x = torch.zeros(16, device="dml")
    part = x[4:8]
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        part[torch.tensor([0, 4, -1], device="dml")] = 1.0
        torch.dml.synchronize()
    assert x[:4].sum() == 0 and x[8:].sum() == 0


def test_index_into_nothing():
    assert_same_error(lambda x, i: x[i], torch.zeros(0, 3), torch.tensor([0]), words=False)
    assert_same_error(lambda x, i: x.take(i), torch.zeros(0), torch.tensor([0]), words=False)
    for sizes in ((0, 6), (6, 0)):
        x, index = torch.zeros(sizes), torch.tensor([0, 0])
        assert_same_outcome(lambda x, i: x.index_add(0, i, x.new_ones(2, x.size(1))), x, index)
        assert_same_outcome(lambda x, i: x.index_select(1, i), x, index)
        assert_same_outcome(lambda x, i: torch.scatter(x, 0, i[:0, None], 1e300), x.half(), index)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        torch.zeros(6, 0, device="dml").index_select(0, torch.tensor([0, 7], device="dml"))
        torch.dml.synchronize()


# ---- gather, scatter and the like


@dtypes(ALL)
def test_gather_and_scatter(dtype: torch.dtype):
    x, v = sample(5, 6, 7, dtype=dtype), sample(4, 6, 8, dtype=dtype)
    for dim in (0, 1, -1):
        sizes = [4, 3, 5]
        i = torch.rand(sizes).argsort(dim)
        assert_matches_cpu(lambda x, i, dim=dim: x.gather(dim, i), x, i)
        assert_matches_cpu(lambda x, i, v, dim=dim: x.scatter(dim, i, v), x, i, v)
        assert_matches_cpu(lambda x, i, dim=dim: x.scatter(dim, i, 1), x, i)
        assert_matches_cpu(lambda x, i, v, dim=dim: x.scatter_add(dim, i, v), x, i.clamp(max=1), v)
    t = torch.rand(3, 4, 5).argsort(0)
    assert_matches_cpu(lambda x, i: x.transpose(0, 2).gather(0, i.transpose(1, 2)), x, t)


@dtypes(torch.int32, torch.int64, FLOATS)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(dtype: torch.dtype, reduce: str):
    x, v, i = sample(5, 6, dtype=dtype), sample(12, 6, dtype=dtype), indices(5, 12, 6)
    v[v == 0] = 1
    for include in (True, False):
        assert_matches_cpu(
            lambda x, i, v, include=include: x.scatter_reduce(0, i, v, reduce, include_self=include),
            x,
            i,
            v.clamp(-2, 2),
        )
        if reduce != "sum":
            assert_matches_cpu(
                lambda x, i, v, include=include: x.index_reduce(0, i, v, reduce, include_self=include),
                x,
                i[:, 0],
                v.clamp(-2, 2),
            )


def test_scatter_reduce_of_nan():
    x, i = torch.zeros(3), torch.tensor([0, 0, 1, 1, 2])
    v = torch.tensor([1.0, float("nan"), float("nan"), 2.0, -1.0])
    for reduce in ("amax", "amin", "sum"):
        assert_matches_cpu(lambda x, i, v, reduce=reduce: x.scatter_reduce(0, i, v, reduce), x, i, v)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_scatter_reduce_of_many(reduce: str):
    """Tiles of one key and tiles of several."""
    i = torch.cat([torch.zeros(1_500, dtype=torch.int64), indices(40, 1_500), torch.full((700,), 39)])
    i = i[torch.randperm(len(i))]
    x, v = sample(40, 3), sample(len(i), 3)
    assert_matches_cpu(lambda x, i, v: x.scatter_reduce(0, i, v, reduce), x, i[:, None].expand(-1, 3), v)
    assert_matches_cpu(lambda x, i, v: x.index_add(0, i, v), x, i, v)
    assert_matches_cpu(lambda x, i: x.gather(0, i), x, torch.zeros(0))


def test_scatter_with_named_reduction():
    x, v, i = sample(5, 6), sample(4, 6), indices(5, 4, 6)
    for reduce in ("add", "multiply"):
        assert_matches_cpu(lambda x, i, v, reduce=reduce: x.scatter(0, i, v, reduce=reduce), x, i, v)
        assert_matches_cpu(lambda x, i, reduce=reduce: x.scatter(0, i, 3.0, reduce=reduce), x, i)


@dtypes(ALL)
def test_slices(dtype: torch.dtype):
    x, i = sample(5, 6, 7, dtype=dtype), torch.tensor([4, 0, 2])
    for dim in (0, 1, -1):
        v = sample(5, 6, 7, dtype=dtype).narrow(dim, 0, 3)
        assert_matches_cpu(lambda x, i, dim=dim: x.index_select(dim, i), x, i)
        assert_matches_cpu(lambda x, i, v, dim=dim: x.index_copy(dim, i, v), x, i, v)
        assert_matches_cpu(lambda x, i, dim=dim: x.index_fill(dim, i - 5 if dim == 0 else i, 1), x, i)
        assert_matches_cpu(lambda x, i, v, dim=dim: x.index_add(dim, i, v), x, torch.tensor([2, 0, 2]), v)
    assert_matches_cpu(lambda x, i: x.index_select(1, i.int()), x.transpose(0, 2), i)


def test_slices_of_0_dim_and_numbers():
    i = torch.tensor([0])
    assert_matches_cpu(lambda x, i: x.index_select(0, i), torch.tensor(3.0), i)
    assert_matches_cpu(lambda x, i: x.index_fill(0, i, 5), torch.tensor(3.0), i)
    assert_matches_cpu(lambda x, i: x.index_add(0, i, x), torch.tensor(3.0), i)
    assert_matches_cpu(lambda x, i: x.gather(0, i[0]), torch.tensor(3.0), i)
    x = sample(4, 3)
    assert_matches_cpu(lambda x, i, v: x.index_fill(1, i, v), x, i, torch.tensor(2.0))
    assert_matches_cpu(lambda x, i: x.index_add(0, i, x[:1], alpha=-3), x, i)
    assert_matches_cpu(lambda x, i: x.index_add(1, i, x[:, :1], alpha=2.5), x, i)


def test_in_place_and_out():
    x, i = sample(5, 6), torch.tensor([[0, 2, 1, 4, 3, 0], [1, 1, 2, 0, 0, 3]])

    def run(x, i):
        a, b, c, d = x.clone().t(), x.clone(), x.clone(), torch.empty_like(x)
        a.t().scatter_(0, i, 2.0)
        b.scatter_add_(0, i, x)
        c.index_add_(0, i[0, 1:3], x[:2])
        torch.scatter(x, 0, i, 3.0, out=d)
        e = torch.gather(x, 0, i, out=torch.empty(0, device=x.device))
        f = torch.index_select(x, 1, i[0], out=torch.empty(5, 6, device=x.device))
        g = torch.index_copy(x, 0, i[0, 1:3], x[:2] + 1, out=torch.empty(0, device=x.device))
        return a, b, c, d, e, f, g

    assert_matches_cpu(run, x, i)


def test_take_and_put():
    x, i = sample(4, 5).t(), torch.tensor([[3, -1], [7, 0]])
    assert_matches_cpu(lambda x, i: x.take(i), x, i)
    assert_matches_cpu(lambda x, i: x.put(i, x[:2, :2]), x, i)
    assert_matches_cpu(lambda x, i: x.put(i * 0, x[:2, :2], accumulate=True), x, i)
    assert_matches_cpu(lambda x, i: x.clone().t().put_(i, x[:2, :2]), x, i)


@dtypes(torch.bool, torch.int64)
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce_of_flags_and_of_nothing(reduce: str, dtype: torch.dtype):
    for sizes, count in (((3,), 1), ((3,), 0), ((3, 0), 1), ((0,), 0), ((3, 2), 1), ((3, 2), 0)):
        x, index = torch.ones(sizes, dtype=dtype), torch.zeros(count, dtype=torch.int64)
        assert_same_outcome(lambda x, i: x.index_reduce(0, i, x[: len(i)], reduce), x, index)
        out = torch.empty(0, dtype=dtype)
        assert_same_outcome(lambda x, i, out: torch.index_reduce(x, 0, i, x[: len(i)], reduce, out=out), x, index, out)


@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_put_of_other_dtypes(index: torch.dtype):
    for source in (torch.float32, torch.int64):
        arguments = torch.ones(3), torch.tensor([1]).to(index), torch.tensor([2]).to(source)
        assert_same_outcome(lambda x, i, s: x.clone().put_(i, s), *arguments)
    for count in (1, 2):
        assert_same_outcome(lambda x, i, s: x.put_(i, s), torch.ones(0), torch.tensor([1]), torch.ones(count))


def test_take_into_a_tensor_that_is_resized():
    """It gets the strides of the index."""
    index = torch.arange(12).reshape(2, 3, 2).permute(2, 0, 1) % 5
    assert_same_outcome(lambda x, i, out: torch.take(x, i, out=out), torch.randn(5), index, torch.empty(1))


def test_a_size_of_repeats_that_is_wrong():
    for repeats in ([1, 2, 0], [-1, 3, 1], [0, 0, 0]):
        for size in (3, 4, 0):
            given = torch.tensor(repeats, device="dml")
            if sum(repeats) == size and min(repeats) >= 0:
                wanted = torch.repeat_interleave(given.cpu(), output_size=size)
                assert_same(torch.repeat_interleave(given, output_size=size), wanted)
                continue
            with pytest.raises(RuntimeError, match=r"repeats can not be negative|does not match required size"):
                torch.repeat_interleave(given, output_size=size)
                torch.dml.synchronize()


def test_repeats_of_other_dtypes():
    # torch from 2.15 on accepts the other integers too; the device refuses them, as earlier
    # versions do.
    others = (torch.int16,) if TORCH < (2, 15) else ()
    for dtype in (torch.int32, torch.float32, torch.bool, *others):
        assert_same_outcome(torch.repeat_interleave, torch.tensor([1, 0, 1]).to(dtype))


def test_gradients():
    x, v, i = torch.randn(5, 6, requires_grad=True), torch.randn(4, 6, requires_grad=True), indices(5, 4, 6)
    distinct = torch.rand(5, 6).argsort(0)[:4]
    assert_matches_cpu(lambda x, i: x.gather(0, i) * x[:4], x, i)
    assert_matches_cpu(lambda x, i, v: x.scatter(0, i, v) * 2, x, distinct, v)
    assert_matches_cpu(lambda x, i, v: x.scatter_add(0, i, v) * x, x, i, v)
    assert_matches_cpu(lambda x, i: x.index_select(0, i) * 3, x, i[0])
    assert_matches_cpu(lambda x, i, v: x.index_add(0, i, v) * x, x, i[:, 0], v)
    assert_matches_cpu(lambda x, i, v: x.index_copy(0, i, v) * x, x, distinct[:, 0], v)
    assert_matches_cpu(lambda x, i: x.index_fill(0, i, 2.0) * x, x, i[0])
    assert_matches_cpu(lambda x, i: x.take(i) * 2, x, i)
    assert_matches_cpu(lambda x, i, v: x.index_put((i,), v) * x, x, distinct[:, 0], v)


# ---- nonzero and masks


@pytest.mark.smoke
@dtypes(ALL)
def test_nonzero(dtype: torch.dtype):
    x = sample(4, 5, 6, dtype=dtype)
    assert_matches_cpu(torch.nonzero, x)
    assert_matches_cpu(lambda x: x.transpose(0, 2).nonzero(), x)
    assert_matches_cpu(lambda x: x.nonzero(as_tuple=True), x)
    assert_matches_cpu(lambda x: torch.masked_select(x, x > 0), x)


def test_nonzero_of_special_values():
    assert_matches_cpu(torch.nonzero, torch.tensor([0.0, -0.0, float("nan"), 1e-40, float("inf")]))
    assert_matches_cpu(torch.nonzero, torch.tensor(5))
    assert_matches_cpu(torch.nonzero, torch.tensor(0))
    assert_matches_cpu(torch.nonzero, torch.zeros(0, 3))
    assert_matches_cpu(torch.nonzero, torch.zeros(3, 0))
    assert_matches_cpu(torch.nonzero, torch.zeros(3, 4))
    assert_matches_cpu(torch.argwhere, sample(3, 4))


@pytest.mark.parametrize("count", [2_047, 2_048, 2_049, 70_001])
def test_nonzero_of_many(count: int):
    x = sample(count, dtype=torch.bool)
    assert_matches_cpu(torch.nonzero, x)
    assert_matches_cpu(lambda x, m: x[m], torch.arange(count), x)


def test_nonzero_out_and_static():
    x = sample(5, 6)
    out = torch.empty(0, dtype=torch.int64, device="dml")
    torch.nonzero(x.to("dml"), out=out)
    assert_same(out, x.nonzero())
    for size in (3, 50):
        assert_matches_cpu(lambda x, size=size: torch.nonzero_static(x, size=size, fill_value=-7), x)


def test_out_of_another_dtype():
    """It is refused with the CPU's message."""
    for function in (
        lambda x, i: torch.gather(x, 0, i, out=x.new_empty(2).double()),
        lambda x, i: torch.scatter(x, 0, i, x, out=x.new_empty(2).double()),
        lambda x, i: torch.index_add(x, 0, i, x, out=x.new_empty(2).int()),
    ):
        assert_same_error(function, torch.zeros(2), torch.tensor([0, 1]))


def test_masked_select_and_scatter():
    x, m, v = sample(4, 5), sample(4, 5, dtype=torch.bool), sample(30)
    assert_matches_cpu(torch.masked_select, x, m)
    assert_matches_cpu(lambda x, m: x.masked_select(m[0]), x, m)
    assert_matches_cpu(lambda x, m: x[0].masked_select(m), x, m)
    assert_matches_cpu(lambda x, m: x.t().masked_select(m.t()), x, m)
    assert_matches_cpu(lambda x, m, v: x.masked_scatter(m, v), x, m, v)
    assert_matches_cpu(lambda x, m, v: x.t().masked_scatter(m.t(), v[: int(m.sum())]), x, m, v)
    assert_matches_cpu(lambda x, m, v: x.masked_scatter(m[0], v), x, m, v)
    shared = lambda x: torch.zeros(3, device=x.device).expand(2, 3)  # noqa: E731
    assert_same_error(lambda x: torch.masked_select(x, x > 9, out=shared(x)), torch.arange(4.0))
    assert_matches_cpu(lambda x, m: x.masked_select(m) * 2, torch.randn(4, 5, requires_grad=True), m)
    assert_matches_cpu(
        lambda x, m, v: x.masked_scatter(m, v) * 2,
        torch.randn(4, 5, requires_grad=True),
        m,
        torch.randn(30, requires_grad=True),
    )


def test_printing():
    x = torch.tensor([[1.5, float("nan")], [-2e10, 0.0]])
    assert repr(x.to("dml")) == repr(x).replace("]])", "]], device='dml:0')")
    assert "device='dml:0'" in repr(torch.arange(2_000).to("dml"))


# ---- embedding


@dtypes(FLOATS)
def test_embedding(dtype: torch.dtype):
    weight = sample(9, 8, dtype=dtype, grad=True)
    for i in (indices(9, 4, 5), indices(9, 7).int(), torch.zeros(0, 3, dtype=torch.int64)):
        assert_matches_cpu(lambda w, i: F.embedding(i, w), weight, i)
    i = indices(9, 4, 5)
    assert_matches_cpu(lambda w, i: F.embedding(i, w, padding_idx=3), weight, i)
    assert_matches_cpu(lambda w, i: F.embedding(i, w, padding_idx=-1), weight, i)
    assert_matches_cpu(lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), weight, i)


def test_embedding_of_many():
    weight = torch.randn(50, 16, requires_grad=True)
    assert_matches_cpu(lambda w, i: F.embedding(i, w), weight, indices(50, 3_000), terms=8)
