"""Systems with triangular matrices, compared with the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.support.compare import assert_same_error
from tests.support.layouts import lay_out, layouts
from tests.support.matrices import EDGES, REALS, SQUARES, assert_no_worse, general, triangular

FLAGS = list(itertools.product((False, True), repeat=3))


def check(a, b, upper, left, unit):
    """Compares residuals with the CPU's."""
    solve = lambda a, b: torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)  # noqa: E731
    dml, cpu = solve(a.to("dml"), b.to("dml")), solve(a, b)
    assert dml.shape == cpu.shape and dml.dtype == cpu.dtype
    whole = (a.triu() if upper else a.tril()).double().nan_to_num()
    if unit:
        whole = whole - torch.diag_embed(whole.diagonal(dim1=-2, dim2=-1)) + torch.eye(a.shape[-1], dtype=torch.float64)
    residual = lambda x: (whole @ x.double() if left else x.double() @ whole) - b.double()  # noqa: E731
    assert_no_worse(residual(dml.cpu()), residual(cpu), cpu, b.dtype)


@pytest.mark.parametrize("upper,left,unit", FLAGS)
@REALS
def test_solve_triangular(upper, left, unit, dtype):
    for sizes in SQUARES:
        n = sizes[-1]
        for k in (0, 1, 9):
            a = triangular(*sizes, upper=upper, dtype=dtype)
            check(a, general(*sizes[:-2], *((n, k) if left else (k, n)), dtype=dtype), upper, left, unit)


@pytest.mark.parametrize("upper,left,unit", FLAGS)
def test_edges_of_blocks(upper, left, unit):
    """One right-hand side, a few, and more than a workgroup has."""
    for sizes in EDGES:
        n = sizes[-1]
        for k in (1, 8, 9, 32, 70) if len(sizes) == 2 else (3, 40):
            a = triangular(*sizes, upper=upper, dtype=torch.float32)
            b = general(*sizes[:-2], *((n, k) if left else (k, n)), dtype=torch.float32)
            check(a, b, upper, left, unit)
            if k in (9, 40):
                check(a.mT.contiguous().mT, b.mT.contiguous().mT, upper, left, unit)


@REALS
def test_diagonals_without_reciprocals(dtype):
    """Numbers whose reciprocals are subnormal or infinite, zeros, infinities and NaN on the
    diagonal.
    """
    tiny, huge = torch.finfo(dtype).tiny, torch.finfo(dtype).max
    for k in (2, 20):
        for value in (tiny / 8, huge, -tiny):
            a = triangular(40, 40, upper=False, dtype=dtype).tril()
            a[35, 35] = value
            b = general(40, k, dtype=dtype)
            b[35] = a[35, :35] @ torch.linalg.solve_triangular(a[:35, :35], b[:35], upper=False) * 0.5
            dml, cpu = (torch.linalg.solve_triangular(a.to(d), b.to(d), upper=False).cpu() for d in ("dml", "cpu"))
            torch.testing.assert_close(dml[:35], cpu[:35])
            torch.testing.assert_close(dml[35], cpu[35], rtol=1e-4 if dtype == torch.float32 else 1e-10, atol=0)
        for value in (0, torch.inf, torch.nan):
            a = triangular(40, 40, upper=True, dtype=dtype).triu()
            a[20, 20] = value
            b = general(40, k, dtype=dtype)
            dml, cpu = (torch.linalg.solve_triangular(a.to(d), b.to(d), upper=True).cpu() for d in ("dml", "cpu"))
            torch.testing.assert_close(dml, cpu, equal_nan=True)


@layouts("expanded", "channels_last", "zero_dim", "empty")
def test_layouts(layout):
    a = lay_out(triangular(40, 40, upper=False, dtype=torch.float32), layout)
    b = lay_out(general(40, 40, dtype=torch.float32), layout)
    check(a, b, False, True, False)
    check(a.mT, b, True, False, False)


def test_broadcasting():
    a = triangular(2, 1, 5, 5, upper=True, dtype=torch.float64)
    check(a, general(3, 5, 4, dtype=torch.float64), True, True, False)
    check(a[0], general(3, 5, 4, dtype=torch.float64), True, True, False)
    check(a[0, 0], general(2, 3, 5, 4, dtype=torch.float64), True, True, False)
    check(a.expand(2, 3, 5, 5), general(5, 4, dtype=torch.float64), True, True, False)


def test_out_and_in_place():
    a, b = triangular(40, 40, upper=True, dtype=torch.float32).to("dml"), general(40, 8, dtype=torch.float32).to("dml")
    expected = torch.linalg.solve_triangular(a, b, upper=True)
    out = torch.empty(8, 40, device="dml").mT
    assert torch.linalg.solve_triangular(a, b, upper=True, out=out) is out
    assert torch.equal(out, expected)
    torch.linalg.solve_triangular(a, b, upper=True, out=b)
    assert torch.equal(b, expected)


@REALS
def test_triangular_solve(dtype):
    for upper, transpose, unit in FLAGS:
        a, b = triangular(2, 6, 6, upper=upper, dtype=dtype).nan_to_num(), general(2, 6, 3, dtype=dtype)
        cpu = torch.triangular_solve(b, a, upper, transpose, unit)
        dml = torch.triangular_solve(b.to("dml"), a.to("dml"), upper, transpose, unit)
        torch.testing.assert_close(dml[0].cpu(), cpu[0])
        torch.testing.assert_close(dml[1].cpu(), cpu[1])


def test_gradients():
    a = triangular(2, 4, 4, upper=True, dtype=torch.float64).nan_to_num().to("dml").requires_grad_()
    b = general(4, 3, dtype=torch.float64).to("dml").requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True), (a, b))


def test_errors():
    solve = lambda a, b: torch.linalg.solve_triangular(a, b, upper=True)  # noqa: E731
    for a, b in [((3, 4), (3, 3)), ((3,), (3, 3)), ((3, 3), (4, 3)), ((2, 3, 3), (3, 3, 3))]:
        assert_same_error(solve, torch.ones(a), torch.ones(b))
    # The CPU interprets the elements of one tensor with the other's dtype.
    with pytest.raises(RuntimeError, match="Expected A and B to have the same dtype"):
        solve(torch.ones(3, 3, device="dml"), torch.ones(3, 3, device="dml").double())
