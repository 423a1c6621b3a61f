"""Reductions, compared with the CPU: dtypes, dims, strides, empty and 0-dim tensors, out=, errors,
gradients.
"""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error
from tests.support.dtypes import ALL, FLOATS, INTEGERS, dtypes, sample

DIMS = [None, 0, -1, (0, 2), (1,), (0, 1, 2), ()]


@dtypes(ALL)
@pytest.mark.parametrize("dim", DIMS)
def test_sum(dtype, dim):
    assert_matches_cpu(lambda x: x.sum(dim), sample(3, 5, 7, dtype=dtype))


@dtypes(ALL)
def test_sum_dtype_argument(dtype):
    x = sample(4, 6, dtype=dtype)
    for wanted in (torch.float32, torch.float64, torch.int64, torch.float16):
        assert_matches_cpu(lambda x, wanted=wanted: x.sum(1, dtype=wanted), x)
    assert_matches_cpu(lambda x: x.sum(dtype=torch.float32), x)


@pytest.mark.parametrize("shape", [(1,), (3,), (64,), (1000,), (33, 65), (1, 1025), (1025, 1), (7, 3, 300), (20000,)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sum_shapes(shape, keepdim):
    x = torch.randn(shape)
    for dim in range(-1, len(shape)):
        y = x.to("dml").sum(dim, keepdim=keepdim).cpu()
        want = x.double().sum(dim, keepdim=keepdim)
        bound = x.double().abs().sum(dim, keepdim=keepdim) * 6e-7 + 1e-7
        assert y.shape == want.shape
        assert ((y - want).abs() <= bound).all()


def test_sum_is_as_accurate_as_the_cpu():
    x = torch.rand(1 << 21) + 1
    want = x.double().sum()
    assert abs(x.to("dml").sum().cpu() - want) <= max(2 * abs(x.sum() - want), want * 1.2e-7)


@dtypes(torch.float32, torch.int64)
def test_strided(dtype):
    x = sample(4, 6, 8, 3, dtype=dtype)
    for view in (
        lambda x: x.permute(2, 0, 3, 1),
        lambda x: x[:, ::2, 1::3],
        lambda x: x.transpose(1, 2)[1],
        lambda x: x[:1].expand(5, 6, 8, 3),
        lambda x: x.contiguous(memory_format=torch.channels_last),
    ):
        for dim in (None, 0, -1, (0, -1)):
            assert_matches_cpu(lambda x, view=view, dim=dim: view(x).sum(dim), x)
            assert_matches_cpu(lambda x, view=view, dim=dim: view(x).amax(dim if dim is not None else ()), x)
        assert_matches_cpu(lambda x, view=view: view(x).argmax(), x)
        assert_matches_cpu(lambda x, view=view: view(x).argmin(1), x)


@dtypes(FLOATS)
@pytest.mark.parametrize("dim", DIMS)
def test_mean(dtype, dim):
    assert_matches_cpu(lambda x: x.mean(dim), sample(3, 5, 7, dtype=dtype))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_the_mean_of_floats_as_a_half_rounds_the_mean_alone(half):
    x = sample(4, 50) - sample(4, 50).mean()
    for view in (x, x.double(), x.T):
        assert_same(view.to("dml").mean(dtype=half), view.mean(dtype=half))
        assert_matches_cpu(lambda x: x.mean(1, dtype=half), view)


@dtypes(ALL)
def test_prod(dtype):
    x = sample(3, 5, dtype=dtype)
    assert_matches_cpu(lambda x: x.prod(), x)
    assert_matches_cpu(lambda x: x.prod(1), x)
    assert_matches_cpu(lambda x: x.prod(-2, keepdim=True), x)


@dtypes(FLOATS, torch.int64, torch.bool)
def test_nansum_and_count(dtype):
    x = sample(4, 9, dtype=dtype)
    if dtype.is_floating_point:
        x[1, 3] = math.nan
    assert_matches_cpu(lambda x: x.nansum(1), x)
    assert_matches_cpu(lambda x: x.count_nonzero(), x)
    assert_matches_cpu(lambda x: x.count_nonzero(0), x)
    assert_matches_cpu(lambda x: x.count_nonzero((0, 1)), x)


@dtypes(ALL)
def test_extrema(dtype):
    x = sample(4, 9, 5, dtype=dtype)
    for function in (
        lambda x: x.max(),
        lambda x: x.min(),
        lambda x: x.amax(()),
        lambda x: x.amax((0, 2), keepdim=True),
        lambda x: x.amin(-1),
        lambda x: tuple(x.aminmax()),
        lambda x: tuple(x.aminmax(dim=1, keepdim=True)),
        lambda x: tuple(x.max(1)),
        lambda x: tuple(x.min(-1, keepdim=True)),
        lambda x: tuple(x.max(0)),
    ):
        assert_matches_cpu(function, x)
    if dtype != torch.bool:
        for function in (
            lambda x: x.argmax(),
            lambda x: x.argmin(1),
            lambda x: x.argmax(2, keepdim=True),
            lambda x: x.argmin(keepdim=True),
        ):
            assert_matches_cpu(function, x)


@dtypes(FLOATS)
def test_nan_wins_and_first_of_equals(dtype):
    x = sample(6, 40, dtype=dtype)
    x[1, 30] = math.nan
    x[1, 7] = math.nan
    x[2] = 0
    x[3] = -math.inf
    x[4, 5] = x[4, 20] = 50
    x[5, 5] = x[5, 20] = -50
    for function in (
        lambda x: tuple(x.max(1)),
        lambda x: tuple(x.min(1)),
        lambda x: x.argmax(1),
        lambda x: x.argmin(),
        lambda x: x.amax(1),
        lambda x: tuple(x.aminmax(dim=1)),
        lambda x: x.max(),
        lambda x: x.min(),
        lambda x: x.sum(1),
        lambda x: x.mean(0),
        lambda x: x.prod(1),
        lambda x: x.norm(dim=1),
        lambda x: x.norm(math.inf, dim=1),
        lambda x: x.any(1),
        lambda x: x.all(0),
        lambda x: x.var(1),
    ):
        assert_matches_cpu(function, x)


def test_extremes_of_the_dtype():
    for dtype in INTEGERS:
        info = torch.iinfo(dtype)
        assert_matches_cpu(lambda x: (x.max(), x.min(), *x.max(0)), torch.tensor([info.min, info.max], dtype=dtype))
        assert_matches_cpu(lambda x: (x.max(), *x.max(0)), torch.tensor([info.min, info.min], dtype=dtype))
        assert_matches_cpu(lambda x: (x.min(), *x.min(0)), torch.tensor([info.max, info.max], dtype=dtype))


@dtypes(ALL)
def test_any_and_all(dtype):
    for x in (sample(4, 9, dtype=dtype), torch.zeros(4, 9, dtype=dtype), torch.ones(4, 9, dtype=dtype)):
        for function in (
            lambda x: x.any(),
            lambda x: x.all(),
            lambda x: x.any(1),
            lambda x: x.all(0, keepdim=True),
            lambda x: x.any((0, 1)),
            lambda x: x.all((0, -1), keepdim=True),
            lambda x: torch.any(x, dim=()),
        ):
            assert_matches_cpu(function, x)


@dtypes(FLOATS)
@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, math.inf, -math.inf])
def test_norms(dtype, p):
    x = sample(4, 9, dtype=dtype).abs() + 0.5
    assert_matches_cpu(lambda x: torch.linalg.vector_norm(x, p), x)
    assert_matches_cpu(lambda x: torch.linalg.vector_norm(x, p, dim=-1, keepdim=True), x)
    assert_matches_cpu(lambda x: x.norm(p, dim=(0, 1)), x)
    assert_matches_cpu(lambda x: x.norm(p), x)
    assert_matches_cpu(lambda x: torch.linalg.vector_norm(x, p, dtype=torch.float64), x)


def test_the_norm_of_one_element_is_its_magnitude():
    x = torch.tensor([[-1e-30, 1e30, 0.08, math.nan, -math.inf]])
    for p in (0, 2, 3.5, 255, -2, math.inf):
        assert_matches_cpu(lambda x, p=p: torch.linalg.vector_norm(x, p, dim=0), x)
        assert_matches_cpu(lambda x, p=p: x[0, 1].norm(p), x)


@dtypes(FLOATS)
@pytest.mark.parametrize("correction", [0, 1, 2.5])
def test_variance(dtype, correction):
    x = sample(5, 9, 4, dtype=dtype)
    for dim in (None, 1, (0, 2)):
        assert_matches_cpu(lambda x, dim=dim: x.var(dim, correction=correction), x)
        assert_matches_cpu(lambda x, dim=dim: x.std(dim, correction=correction, keepdim=True), x)
        assert_matches_cpu(lambda x, dim=dim: tuple(torch.var_mean(x, dim, correction=correction)), x)
        assert_matches_cpu(lambda x, dim=dim: tuple(torch.std_mean(x, dim, correction=correction)), x)
    assert_matches_cpu(lambda x: (x.var(), x.std(unbiased=False), x.var(0, unbiased=True)), x)


def test_variance_keeps_digits_far_from_zero():
    x = torch.randn(3, 5000) + 1000
    got = x.to("dml").var(1).cpu()
    want = x.double().var(1)
    assert ((got - want) / want).abs().max() < 5e-7


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_empty_and_zero_dim():
    empty, zero = torch.zeros(3, 0, 2), torch.tensor(3.5)
    for function in (
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.prod(),
        lambda x: x.any(),
        lambda x: x.all(),
        lambda x: x.norm(),
        lambda x: x.var(),
        lambda x: x.std(),
    ):
        assert_matches_cpu(function, empty)
        assert_matches_cpu(function, zero)
    for function in (
        lambda x: x.sum(1),
        lambda x: x.sum((0, 2)),
        lambda x: x.mean(1, keepdim=True),
        lambda x: x.prod(1),
        lambda x: x.any(1),
        lambda x: x.all(0),
        lambda x: x.amax(0),
        lambda x: tuple(x.max(2)),
        lambda x: x.argmax(2),
        lambda x: x.norm(dim=1),
        lambda x: x.var(1),
    ):
        assert_matches_cpu(function, empty)
    for function in (
        lambda x: x.sum(0),
        lambda x: x.sum(-1, keepdim=True),
        lambda x: tuple(x.max(0)),
        lambda x: x.argmin(-1),
        lambda x: x.argmax(),
        lambda x: x.amax(0),
        lambda x: x.prod(0),
        lambda x: x.mean(0),
    ):
        assert_matches_cpu(function, zero)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("elements", [1, 64, 2**23])
def test_reductions_of_nothing_load_nothing(elements):
    """At a storage's beginning, where a load before the first element would be out of memory."""
    storage = torch.ones(elements).to("dml")
    for size, stride in (((0,), (1,)), ((6, 0), (1, 1)), ((0, 6), (1, 1)), ((3, 0, 2), (0, 1, 0)), ((2, 0), (7, 3))):
        x = storage.as_strided(size, stride)
        for dim in (None, *range(x.dim())):
            if dim is not None and size[dim] != 0:
                continue
            dims = () if dim is None else (dim,)
            assert (torch.sum(x, dims) == 0).all() and (torch.nansum(x, dims) == 0).all()
            assert torch.mean(x, dims).isnan().all() and torch.var(x, dims).isnan().all()
            assert (torch.linalg.vector_norm(x, 2, dims) == 0).all() and (torch.logsumexp(x, dims) == -math.inf).all()
            assert not torch.any(x, dims).any() and torch.all(x, dims).all()
        assert x.prod() == 1 and x.count_nonzero() == 0 and torch.equal(x.unique(), x.flatten())
        out = storage.new_full((), 3.0)
        for loss in (torch.ops.aten.mse_loss, torch.ops.aten.smooth_l1_loss, torch.ops.aten.binary_cross_entropy):
            more = (None,) if "entropy" in str(loss) else ()
            assert loss.out(x, x, *more, 1, out=out).isnan() and loss(x, x, *more, 2) == 0


@dtypes(ALL)
def test_nothing_to_choose_from(dtype):
    empty = torch.empty(0, dtype=dtype)
    for function in (torch.min, torch.max):
        assert_matches_cpu(lambda x, f=function: f(x, out=torch.ones((), dtype=x.dtype, device=x.device)), empty)
    assert_matches_cpu(lambda x: (x.median(), x.nanmedian()), empty)
    assert_matches_cpu(lambda x: torch.searchsorted(x, x), empty)
    assert_matches_cpu(lambda x: torch.nansum(x.float(), dtype=torch.int8), empty)
    assert_matches_cpu(lambda x: x.cumsum(0, dtype=torch.bool), empty)
    assert_matches_cpu(lambda x: x.cumprod(0, dtype=torch.bool), torch.ones((), dtype=dtype))


@dtypes(FLOATS)
@pytest.mark.parametrize("n", [1, 2, 3, 300, 5000])
def test_moments_of_infinities(dtype, n):
    x = torch.randn(n).to(dtype)
    for at in {0, n // 2, n - 1}:
        y = x.clone()
        y[at] = math.inf
        spread, mean = torch.var_mean(y.to("dml"), correction=0)
        assert spread.isnan() and mean == math.inf
        assert torch.std(y.to("dml"), correction=0).isnan()
    spread, mean = torch.var_mean(torch.tensor([math.inf, 1, -math.inf], dtype=dtype, device="dml"))
    assert spread.isnan() and mean.isnan()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(2),
        lambda x: x.sum((0, 0)),
        lambda x: x.sum((0, -2)),
        lambda x: x.long().mean(),
        lambda x: x.mean(dtype=torch.int64),
        lambda x: x.prod(-3),
        lambda x: x.max(5),
        lambda x: x.argmax(2),
        lambda x: (x > 0).argmax(1),
        lambda x: (x > 0).argmin(),
        lambda x: (x > 0).cumsum(0, dtype=torch.bool),
        lambda x: torch.max(x, 0, out=(x.new_empty(1).expand(2), x.new_empty(2, dtype=torch.int64))),
        lambda x: x[:0].max(),
        lambda x: x[:0].min(),
        lambda x: x[:0].argmax(),
        lambda x: x[:0].max(0),
        lambda x: x[:0].argmin(0),
        lambda x: x[:0].amax(0),
        lambda x: x[:0].amax(),
        lambda x: x[:0].aminmax(),
        lambda x: x.any(3),
        lambda x: x.all((0, 0)),
        lambda x: x.long().std(),
        lambda x: x.long().norm(),
        lambda x: torch.linalg.vector_norm(x[:0], math.inf),
        lambda x: torch.sum(x, 0, out=torch.empty(2, dtype=torch.float64, device=x.device), dtype=torch.float32),
        lambda x: torch.amax(x, 0, out=torch.empty(2, dtype=torch.float64, device=x.device)),
        lambda x: torch.any(x, 0, out=torch.empty(2, dtype=torch.float32, device=x.device)),
        lambda x: torch.all(x, 9, out=torch.empty(2, dtype=torch.float32, device=x.device)),
        lambda x: torch.mean(x.long(), 0, out=x[0].clone()),
        lambda x: torch.norm(x, 2, 0, dtype=torch.float16),
        lambda x: torch.linalg.vector_norm(x.half(), dtype=torch.bfloat16),
        lambda x: torch.linalg.vector_norm(x.long(), 2, 9),
        *(
            lambda x, norm=norm, dtype=dtype, wanted=wanted: norm(x.to(dtype), 2, [9], False, **wanted)
            for norm in (torch.ops.aten.norm, torch.ops.aten.linalg_vector_norm)
            for dtype in (torch.int64, torch.float32)
            for wanted in ({}, {"dtype": torch.int64}, {"dtype": torch.float32})
        ),
        lambda x: torch.mode(x, 9, out=(x.bool(), x.long())),
    ],
)
def test_errors(function):
    assert_same_error(function, torch.ones(3, 2))


def test_out():
    def run(x):
        results = []
        for function, outs in (
            (lambda out: torch.sum(x, 1, out=out), None),
            (lambda out: torch.sum(x, 1, out=out), torch.float64),
            (lambda out: torch.mean(x, (0, 1), out=out), None),
            (lambda out: torch.prod(x, 1, out=out), None),
            (lambda out: torch.amax(x, 1, out=out), None),
            (lambda out: torch.argmax(x, 1, out=out), torch.int64),
            (lambda out: torch.any(x, 1, out=out), torch.bool),
            (lambda out: torch.all(x > 0, 1, out=out), torch.bool),
            (lambda out: torch.var(x, 1, out=out), None),
            (lambda out: torch.norm(x, 2, 1, out=out), None),
            (lambda out: torch.linalg.vector_norm(x, 1, 1, out=out), None),
        ):
            out = torch.empty(0, dtype=outs, device=x.device)
            assert function(out) is out
            results.append(out)
        values, indices = torch.empty(0, device=x.device), torch.empty(0, dtype=torch.int64, device=x.device)
        torch.max(x, 1, out=(values, indices))
        # A strided out= is written in place.
        wide = torch.zeros(5, 2, device=x.device)
        torch.sum(x, 1, out=wide[:, 1])
        return [*results, values, indices, wide]

    assert_matches_cpu(run, torch.randn(5, 7))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(1),
        lambda x: x.mean(),
        lambda x: x.mean((0, 2)),
        lambda x: x.prod(1),
        lambda x: x.amax(1),
        lambda x: x.max(1)[0],
        lambda x: x.min(),
        lambda x: x.norm(),
        lambda x: x.norm(3, dim=1),
        lambda x: x.var(1),
        lambda x: x.std(),
        lambda x: x.logsumexp(1),
        lambda x: torch.var_mean(x, 0),
    ],
)
def test_gradients(function):
    assert_matches_cpu(function, torch.randn(3, 5, 2, requires_grad=True))


@dtypes(FLOATS)
def test_logsumexp(dtype):
    x = sample(4, 9, dtype=dtype) * 5
    assert_matches_cpu(lambda x: x.logsumexp(1), x)
    assert_matches_cpu(lambda x: x.logsumexp((0, 1), keepdim=True), x)


def test_same_bits_twice():
    x = torch.randn(300, 5000).to("dml")
    for dim in (0, 1, None):
        assert_same(x.sum(dim), x.sum(dim).cpu(), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["min", "max"])
def test_extremum_of_no_flags(name):
    """The CPU accepts no elements if `out=` is given, and writes the identity of the reduction."""
    function = getattr(torch.ops.aten, name).unary_out
    x = torch.empty(6, 0, dtype=torch.bool)
    assert_matches_cpu(lambda x: function(x, out=torch.zeros((), dtype=torch.float64, device=x.device)), x)
