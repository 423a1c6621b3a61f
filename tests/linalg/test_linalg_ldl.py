"""Bunch and Kaufman's decomposition, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same, assert_same_error
from tests.support.matrices import REALS, assert_no_worse, general

SIZES = [(1, 1), (2, 2), (3, 3), (7, 7), (33, 33), (70, 70), (3, 9, 9), (2, 2, 5, 5)]
EMPTY = [(0, 0), (2, 0, 0), (0, 3, 3)]


def symmetric(*sizes, dtype):
    """Matrices with eigenvalues of both signs, and small numbers on the diagonal, which lead to
    pivots of two columns.
    """
    x = general(*sizes, dtype=dtype)
    return x + x.mT - 1.5 * torch.diag_embed((x + x.mT).diagonal(dim1=-2, dim2=-1))


@REALS
def test_factor(dtype):
    for sizes in SIZES:
        a = symmetric(*sizes, dtype=dtype)
        (ld, pivots, info), cpu = (torch.linalg.ldl_factor_ex(a.to(d)) for d in ("dml", "cpu"))
        assert ld.stride() == cpu.LD.stride() and torch.equal(pivots.cpu(), cpu.pivots)
        assert torch.equal(info.cpu(), cpu.info) and torch.equal(ld.cpu(), ld.cpu().tril())
        scale = cpu.LD.double().abs().amax() * torch.finfo(dtype).eps
        assert (ld.cpu() - cpu.LD).abs().amax() <= 100 * sizes[-1] * scale


@REALS
def test_solve(dtype):
    for sizes in SIZES:
        a = symmetric(*sizes, dtype=dtype)
        b = general(*sizes[:-1], 3, dtype=dtype)
        x, cpu = (torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a.to(d)), b.to(d)) for d in ("dml", "cpu"))
        assert x.stride() == cpu.stride()
        residual = lambda x: a.double() @ x.cpu().double() - b.double()  # noqa: B023, E731
        size = torch.linalg.matrix_norm(a.double(), keepdim=True) * cpu.double()
        assert_no_worse(residual(x), residual(cpu), 2 * size, dtype)


def test_only_the_lower_triangle_counts():
    a = symmetric(6, 6, dtype=torch.float64)
    beyond = torch.ones_like(a, dtype=torch.bool).triu(1)
    whole, half = (torch.linalg.ldl_factor(x.to("dml")) for x in (a, a.masked_fill(beyond, torch.nan)))
    assert torch.equal(whole.LD, half.LD) and torch.equal(whole.pivots, half.pivots)
    assert torch.equal(torch.linalg.ldl_factor(a.mT.contiguous().mT.to("dml"), hermitian=True).LD, whole.LD)


def test_empty():
    for sizes in EMPTY:
        a = torch.ones(sizes)
        dml, cpu = (torch.linalg.ldl_factor_ex(a.to(d)) for d in ("dml", "cpu"))
        for x, y in zip(dml, cpu, strict=True):
            assert (x.shape, x.dtype, x.stride()) == (y.shape, y.dtype, y.stride())
        b = torch.ones(*sizes[:-1], 2)
        assert torch.linalg.ldl_solve(dml.LD, dml.pivots, b.to("dml")).shape == b.shape
    ld, pivots = torch.linalg.ldl_factor(torch.eye(3, device="dml"))
    assert torch.linalg.ldl_solve(ld, pivots, torch.ones(3, 0, device="dml")).shape == (3, 0)


def test_broadcasting():
    a, b = symmetric(2, 5, 5, dtype=torch.float64), general(3, 1, 5, 2, dtype=torch.float64)
    ld, pivots = torch.linalg.ldl_factor(a.to("dml"))
    torch.testing.assert_close(torch.linalg.ldl_solve(ld, pivots, b.to("dml")).cpu(), torch.linalg.solve(a, b))
    one = torch.linalg.ldl_solve(ld[0], pivots[0].long(), b.to("dml"))
    torch.testing.assert_close(one.cpu(), torch.linalg.solve(a[0], b))


def test_singular_matrices():
    a = torch.stack([torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0.0, 2.0])), torch.eye(3)])
    assert_same(tuple(torch.linalg.ldl_factor_ex(a.to("dml"))), tuple(torch.linalg.ldl_factor_ex(a)))


def test_out():
    a = symmetric(3, 6, 6, dtype=torch.float32).to("dml")
    outs = tuple(torch.empty(0, device="dml", dtype=torch.int32 if i else torch.float32) for i in range(3))
    torch.linalg.ldl_factor_ex(a, out=outs)
    assert all(torch.equal(x, y) for x, y in zip(outs, torch.linalg.ldl_factor_ex(a), strict=True))
    x = torch.empty(0, device="dml")
    assert torch.linalg.ldl_solve(outs[0], outs[1], a, out=x) is x
    torch.testing.assert_close(x.cpu(), torch.eye(6).expand(3, 6, 6), rtol=0, atol=1e-4)


def test_errors():
    factor, solve = torch.linalg.ldl_factor_ex, torch.linalg.ldl_solve
    assert_same_error(factor, torch.ones(3))
    assert_same_error(factor, torch.ones(3, 2))
    assert_same_error(factor, torch.ones(3, 3, dtype=torch.int32))
    assert_same_error(factor, torch.ones(3, 3, dtype=torch.float16))
    ld, pivots = torch.eye(3), torch.arange(1, 4, dtype=torch.int32)
    for a, p, b in (
        (ld, pivots, torch.ones(3)),
        (ld, pivots, torch.ones(2, 2)),
        (ld, pivots, torch.ones(3, 2).double()),
        (ld, pivots.float(), torch.ones(3, 2)),
        (ld, pivots[:2], torch.ones(3, 2)),
        (ld[:, :2], pivots, torch.ones(3, 2)),
        (ld.half(), pivots, torch.ones(3, 2).half()),
    ):
        assert_same_error(solve, a, p, b)


@pytest.mark.allow_fallback
def test_check_errors():
    assert_same_error(lambda a: torch.linalg.ldl_factor_ex(a, check_errors=True), torch.zeros(2, 2), words=False)
