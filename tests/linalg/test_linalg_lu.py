"""LU decompositions and operators that use them, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same_error
from tests.support.dtypes import dtypes
from tests.support.matrices import EDGES, REALS, SQUARES, assert_no_worse, general, wide

OBLONGS = [(5, 3), (3, 5), (100, 17), (17, 100), (300, 40), (2, 40, 70), (3, 0), (0, 4), (2, 3, 1)]


@REALS
def test_factor(dtype):
    for sizes in SQUARES + OBLONGS:
        a = general(*sizes, dtype=dtype)
        dml, cpu = (torch.linalg.lu_factor_ex(a.to(d)) for d in ("dml", "cpu"))
        assert dml.LU.stride() == cpu.LU.stride()
        assert torch.equal(dml.info.cpu(), cpu.info)
        assert torch.equal(dml.pivots.cpu(), cpu.pivots)

        def residual(x, a=a):
            p, lower, u = (t.double() for t in torch.lu_unpack(x.LU.cpu(), x.pivots.cpu()))
            return p @ lower @ u - a.double()

        assert_no_worse(residual(dml), residual(cpu), a, dtype)
        for x, y in zip(torch.linalg.lu(a.to("dml")), torch.lu_unpack(dml.LU.cpu(), dml.pivots.cpu()), strict=True):
            assert torch.equal(x.cpu(), y) and x.stride() == y.stride()


@pytest.mark.slow
@pytest.mark.parametrize("pivot", [True, False])
@dtypes(torch.float32, torch.float64, torch.complex64)
def test_edges_of_panels(pivot, dtype):
    for sizes in [*EDGES, (3, 32, 8), (3, 8, 32), (31, 2), (2, 31), (40, 8), (8, 40), (3, 700, 65), (65, 200)]:
        a = general(*sizes, dtype=dtype)
        if not pivot:
            a = a + 4 * max(sizes[-2:]) * torch.eye(*sizes[-2:], dtype=dtype)
        for turned in (a, a.mT):
            factors = torch.linalg.lu_factor_ex(turned.to("dml"), pivot=pivot)
            lu, pivots, info = (t.cpu() for t in factors)
            assert lu.stride() == torch.empty_like(turned).mT.contiguous().mT.stride() and not info.any()
            p, lower, u = (wide(t) if t.numel() else t for t in torch.lu_unpack(lu, pivots, unpack_pivots=True))
            if pivot:
                cpu = torch.linalg.lu_factor_ex(turned)
                # Not for larger matrices, where different rounding leads to other pivots.
                if max(sizes[-2:]) <= 130:
                    assert torch.equal(pivots, cpu.pivots)
                assert lower.abs().max() <= 1.5
                p_cpu, lower_cpu, u_cpu = (wide(t) for t in torch.lu_unpack(cpu.LU, cpu.pivots))
                assert_no_worse(p @ lower @ u - turned, p_cpu @ lower_cpu @ u_cpu - turned, turned, dtype)
            else:
                assert_no_worse(lower @ u - turned, torch.zeros(1, 1), turned, dtype)


def test_choice_of_pivots():
    """The first of equal elements is chosen, and NaN only if there is nothing else."""
    for n in (3, 8, 20, 32, 40, 70):
        ones = torch.ones(n, n)
        growing = ones.tril() - torch.ones(n, n).tril(-1) * 2
        growing[:, -1] = 1
        for a in (ones, -ones, 0 * ones, torch.eye(n).flip(0), torch.eye(n).roll(3, 0), ones.triu().flip(0), growing):
            dml, cpu = (torch.linalg.lu_factor_ex(a.to(d)) for d in ("dml", "cpu"))
            assert torch.equal(dml.pivots.cpu(), cpu.pivots) and dml.info.item() == cpu.info.item()
            torch.testing.assert_close(dml.LU.cpu(), cpu.LU)
        for at in (0, n // 2, n - 1):
            a = general(n, n, dtype=torch.float32)
            a[at, 0] = torch.nan
            pivots = torch.linalg.lu_factor_ex(a.to("dml")).pivots.cpu()
            size = a[:, 0].abs().nan_to_num(-1)
            assert pivots[0] == size.argmax() + 1
        a = torch.full((n, n), torch.nan)
        factors = torch.linalg.lu_factor_ex(a.to("dml"))
        assert factors.pivots.tolist() == list(range(1, n + 1)) and factors.LU.isnan().all()


def test_many_rows():
    """One invocation for up to eight rows, and more rows than registers hold."""
    for rows in (1030, 2100, 5000, 9000):
        a = general(rows, 20, dtype=torch.float32)
        lu, pivots = torch.linalg.lu_factor(a.to("dml"))
        assert torch.equal(pivots.cpu(), torch.linalg.lu_factor(a).pivots)
        swapped = a.clone()
        for row, other in enumerate(pivots.tolist()):
            swapped[[row, other - 1]] = swapped[[other - 1, row]]
        lower = lu.cpu().tril(-1) + torch.eye(rows, 20)
        assert_no_worse(lower @ lu[:20].cpu().triu() - swapped, torch.zeros(1, 1), a, torch.float32)


def test_which_matrices_are_decomposed():
    """Gradient formulas expect the decomposition of the matrix, or that of its transpose."""
    b = general(5, 2, dtype=torch.float64)
    operators = torch.ops.aten
    for a in (general(2, 5, 5, dtype=torch.float64), general(2, 5, 5, dtype=torch.float64).mT):
        for call, at in (
            (lambda a, d: operators._linalg_det(a), 1),
            (lambda a, d: operators._linalg_slogdet(a), 2),
            (lambda a, d: operators._linalg_solve_ex(a, b.to(d)), 1),
        ):
            dml, cpu = (call(a.to(d), d) for d in ("dml", "cpu"))
            torch.testing.assert_close(dml[at].cpu(), cpu[at])
            assert torch.equal(dml[at + 1].cpu(), cpu[at + 1])


def test_without_pivoting():
    a = general(2, 40, 40, dtype=torch.float64) + 40 * torch.eye(40, dtype=torch.float64)
    p, lower, u = torch.linalg.lu(a.to("dml"), pivot=False)
    assert p.numel() == 0
    torch.testing.assert_close((lower @ u).cpu(), a)


def test_unpack_a_part():
    lu, pivots = torch.linalg.lu_factor(general(4, 4, dtype=torch.float32).to("dml"))
    p, lower, u = torch.lu_unpack(lu, pivots, unpack_data=False)
    assert p.shape == (4, 4) and lower.numel() == u.numel() == 0
    p, lower, u = torch.lu_unpack(lu, pivots, unpack_pivots=False)
    assert p.numel() == 0 and torch.equal(u, lu.triu())


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@REALS
def test_lu_solve(left, adjoint, dtype):
    for sizes in SQUARES:
        a = general(*sizes, dtype=dtype)
        factors = torch.linalg.lu_factor(a)
        b = general(*sizes[:-2], *((sizes[-1], 3) if left else (3, sizes[-1])), dtype=dtype)
        dml, cpu = (
            torch.linalg.lu_solve(*(t.to(d) for t in (*factors, b)), left=left, adjoint=adjoint).cpu().double()
            for d in ("dml", "cpu")
        )
        turned = (a.mT if adjoint else a).double()
        residual = lambda x, t=turned, b=b: (t @ x if left else x @ t) - b.double()  # noqa: E731
        assert_no_worse(residual(dml), residual(cpu), cpu, dtype)


@REALS
def test_solve(dtype):
    shapes = [((5, 5), (5,)), ((5, 5), (5, 2)), ((3, 5, 5), (3, 5)), ((3, 5, 5), (5, 2)), ((2, 1, 5, 5), (3, 5, 4))]
    for a, b in [*shapes, ((0, 0), (0,)), ((0, 5, 5), (0, 5, 2)), ((70, 70), (70, 0)), ((70, 70), (70, 3))]:
        a, b = general(*a, dtype=dtype), general(*b, dtype=dtype)
        for turned in (a, a.mT):
            dml, cpu = (torch.linalg.solve(turned.to(d), b.to(d)) for d in ("dml", "cpu"))
            assert dml.shape == cpu.shape
            tolerance = {} if dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-3}
            torch.testing.assert_close(dml.cpu(), cpu, **tolerance)
    a, b = general(4, 4, dtype=dtype), general(3, 4, dtype=dtype)
    x = torch.linalg.solve(a.to("dml"), b.to("dml"), left=False).cpu()
    torch.testing.assert_close(x @ a, b, rtol=1e-4, atol=1e-4)


@REALS
def test_inverse_and_determinants(dtype):
    for sizes in SQUARES:
        a = general(*sizes, dtype=dtype)
        one = torch.eye(sizes[-1], dtype=torch.float64)
        dml, cpu = (torch.linalg.inv(a.to(d)).cpu() for d in ("dml", "cpu"))
        assert dml.stride() == cpu.stride()
        assert_no_worse(a.double() @ dml.double() - one, a.double() @ cpu.double() - one, cpu, dtype)
        for turned in (a, a.mT):
            exact = torch.linalg.slogdet(turned.double())
            dml = torch.linalg.slogdet(turned.to("dml"))
            assert torch.equal(dml.sign.cpu().double(), exact.sign)
            rtol = 1e-3 if dtype == torch.float32 else 1e-9
            torch.testing.assert_close(dml.logabsdet.cpu().double(), exact.logabsdet, rtol=rtol, atol=rtol)
            det = torch.linalg.det(turned.to("dml")).cpu()
            torch.testing.assert_close(det, torch.linalg.det(turned), rtol=rtol, atol=rtol)


@REALS
def test_singular(dtype):
    a = general(4, 20, 20, dtype=dtype)
    a[1, :, 0] = 0
    a[2, :, 17] = 0
    a[3] = 0
    for call in (torch.linalg.lu_factor_ex, torch.linalg.inv_ex):
        assert call(a.to("dml")).info.tolist() == call(a).info.tolist() == [0, 1, 18, 1]
    assert torch.linalg.det(a.to("dml")).tolist()[1:] == [0, 0, 0]
    sign, logarithm = torch.linalg.slogdet(a.to("dml"))
    assert sign.tolist()[1:] == [0, 0, 0] and logarithm.tolist()[1:] == [-torch.inf] * 3
    assert_same_error(torch.linalg.inv, a)
    assert_same_error(torch.linalg.solve, a, a)


def test_out():
    a = general(3, 6, 6, dtype=torch.float32).to("dml")
    empty = lambda: torch.empty(0, device="dml")  # noqa: E731
    assert torch.equal(torch.linalg.inv(a, out=empty()), torch.linalg.inv(a))
    assert torch.equal(torch.linalg.det(a, out=empty()), torch.linalg.det(a))
    assert torch.equal(torch.linalg.solve(a, a[0], out=empty()), torch.linalg.solve(a, a[0]))
    outs = torch.linalg.lu(a, out=(empty(), empty(), empty()))
    assert all(torch.equal(x, y) for x, y in zip(outs, torch.linalg.lu(a), strict=True))
    same = a.clone()
    assert torch.equal(torch.linalg.inv(same, out=same), torch.linalg.inv(a))


def test_powers():
    a = general(2, 4, 4, dtype=torch.float64)
    for n in (-3, -1, 0, 1, 5):
        torch.testing.assert_close(torch.linalg.matrix_power(a.to("dml"), n).cpu(), torch.linalg.matrix_power(a, n))
    a = general(4, 8, dtype=torch.float64)[:, :4].reshape(4, 2, 2).contiguous()
    inverse = lambda a: torch.linalg.tensorinv(a, ind=1)  # noqa: E731
    torch.testing.assert_close(inverse(a.to("dml")).cpu(), inverse(a))


def test_gradients():
    a = (general(2, 4, 4, dtype=torch.float64) + 3 * torch.eye(4)).to("dml").requires_grad_()
    b = general(2, 4, 2, dtype=torch.float64).to("dml").requires_grad_()
    check = torch.autograd.gradcheck
    for turn in (lambda x: x, lambda x: x.mT):
        assert check(lambda a, turn=turn: torch.linalg.det(turn(a)), a)
        assert check(lambda a, turn=turn: torch.linalg.slogdet(turn(a))[1], a)
        assert check(lambda a, b, turn=turn: torch.linalg.solve(turn(a), b), (a, b))
    assert check(torch.linalg.inv, a)
    assert check(lambda a: torch.linalg.lu(a)[1:], a)
    assert check(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), (a, b))


def test_errors():
    for sizes in [(3,), (3, 4), (2, 4, 3)]:
        assert_same_error(torch.linalg.inv, torch.ones(sizes))
        assert_same_error(torch.linalg.det, torch.ones(sizes))
    assert_same_error(torch.linalg.lu_factor, torch.ones(3))
    assert_same_error(torch.linalg.solve, torch.ones(3, 3), torch.ones(4, 2))
    assert_same_error(torch.linalg.solve, torch.ones(3, 3), torch.ones(3, 2).double(), words=False)
    for dtype in (torch.int64, torch.float16):
        one = torch.eye(3, dtype=dtype)
        for call in (torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet, torch.linalg.lu, torch.linalg.lu_factor):
            assert_same_error(call, one)
        assert_same_error(torch.linalg.solve, one, one)
        assert_same_error(torch.linalg.lu_solve, one, torch.ones(3, dtype=torch.int32), one)
