"""Distances between rows, compared with the CPU, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu
from tests.support.dtypes import dtypes, leaf

ORDERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]


@pytest.mark.parametrize("p", ORDERS)
@dtypes(torch.float32, torch.float64)
def test_cdist(p, dtype):
    direct = lambda x, y: torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist")  # noqa: E731
    assert_matches_cpu(direct, leaf(6, 3, dtype=dtype), leaf(5, 3, dtype=dtype))
    assert_matches_cpu(direct, leaf(2, 5, 3, dtype=dtype), leaf(4, 3, dtype=dtype))
    assert_matches_cpu(direct, leaf(3, 1, 2, 7, dtype=dtype), leaf(2, 4, 7, dtype=dtype))


def test_cdist_shapes():
    assert_matches_cpu(torch.cdist, leaf(70, 9), leaf(40, 9))
    assert_matches_cpu(torch.cdist, leaf(3, 2000), leaf(2, 2000))
    assert_matches_cpu(lambda x, y: torch.cdist(x.mT, y[:, ::2], 1.0), leaf(5, 4), leaf(3, 10))
    assert_matches_cpu(lambda x: torch.cdist(x, x, 2.0), leaf(4, 3))
    for a, b in (((2, 0, 3), (4, 3)), ((5, 3), (0, 3)), ((5, 0), (4, 0)), ((0, 5, 2), (1, 4, 2))):
        assert_matches_cpu(lambda x, y: torch.cdist(x, y, 3.0), leaf(*a), leaf(*b))


def test_cdist_is_exact_for_rows_that_are_close():
    x = torch.randn(40, 5) + 100
    y = x + 1e-3 * torch.randn(40, 5)
    near = torch.ops.aten._cdist_forward(x.to("dml"), y.to("dml"), 2.0, None).cpu().diagonal()
    torch.testing.assert_close(near, (x - y).norm(dim=1), rtol=1e-5, atol=0)


def test_cdist_of_special_values():
    x = torch.tensor([[math.nan, 1.0], [math.inf, 0.0], [1.0, 1.0]])
    for p in (0.0, 1.0, 2.0, 3.0):
        assert_matches_cpu(lambda x, p=p: torch.ops.aten._cdist_forward(x, x, p, None), x)


def test_cdist_errors():
    x, y = torch.randn(4, 3, device="dml"), torch.randn(5, 3, device="dml")
    with pytest.raises(RuntimeError, match="at least 2D tensors, X1 got: 1D"):
        torch.cdist(x[0], y)
    with pytest.raises(RuntimeError, match=r"X1 and X2 must have the same number of columns\. X1: 3 X2: 2"):
        torch.cdist(x, y[:, :2])
    with pytest.raises(RuntimeError, match="non-negative p values"):
        torch.cdist(x, y, -1.0)
    with pytest.raises(RuntimeError, match="floating-point dtypes, X1 got: Long"):
        torch.cdist(x.long(), y.long())
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        torch.cdist(x.expand(2, 4, 3), y.expand(3, 5, 3))


@pytest.mark.parametrize("p", ORDERS)
@dtypes(torch.float32, torch.float64)
def test_pdist(p, dtype):
    assert_matches_cpu(lambda x: F.pdist(x, p), leaf(7, 4, dtype=dtype))
    assert_matches_cpu(lambda x: F.pdist(x, p), leaf(2, 1, dtype=dtype))


def test_pdist_shapes_and_errors():
    for shape in ((0, 3), (1, 3), (5, 0)):
        assert_matches_cpu(F.pdist, torch.randn(*shape))  # the gradient crashes on the CPU
    assert_matches_cpu(lambda x: F.pdist(x.t()), leaf(4, 60))
    x = torch.randn(4, 3, device="dml")
    with pytest.raises(RuntimeError, match="pdist only supports 2D tensors, got: 3D"):
        F.pdist(x[None])
    with pytest.raises(RuntimeError, match="non-negative p values"):
        F.pdist(x, -1.0)


def test_gradients_of_infinite_distances():
    x = torch.tensor([[math.inf, 1.0], [0.0, 2.0], [math.nan, 1.0], [4.0, 1.0]], requires_grad=True)
    assert_matches_cpu(lambda x: F.pdist(x, math.inf), x)
    finite = torch.tensor([[0.0, 2.0], [3.0, 1.0]])  # With NaN, the CPU's cdist ignores it for some p.
    assert_matches_cpu(lambda x, y: torch.cdist(x[:2], y, math.inf), x, finite)


@dtypes(torch.float32, torch.float64, torch.float16)
def test_composites(dtype):
    x, y = leaf(4, 5, 3, dtype=dtype), leaf(4, 5, 3, dtype=dtype)
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda x, y, dim=dim: F.cosine_similarity(x, y, dim), x, y, terms=4)
    for p in (1.0, 2.0, 3.0):
        assert_matches_cpu(lambda x, y, p=p: F.pairwise_distance(x, y, p), x, y, terms=4)
    assert_matches_cpu(lambda x, y: F.pairwise_distance(x, y[0], keepdim=True), x, y, terms=4)
    assert_matches_cpu(lambda x, y: F.cosine_similarity(x, y[:1]), x, y, terms=4)
