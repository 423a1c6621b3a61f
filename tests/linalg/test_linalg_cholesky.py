"""The Cholesky decomposition, compared with the CPU."""

from __future__ import annotations

import pytest
import torch
from torch_dml import operators

from tests.support.compare import assert_same_error
from tests.support.dtypes import dtypes
from tests.support.matrices import EDGES, REALS, SQUARES, assert_no_worse, general, positive_definite, wide


@pytest.mark.parametrize("upper", [False, True])
@REALS
def test_cholesky(upper, dtype):
    for sizes in SQUARES:
        a = positive_definite(*sizes, dtype=dtype)
        dml, cpu = (torch.linalg.cholesky_ex(a.to(d), upper=upper) for d in ("dml", "cpu"))
        assert dml.L.stride() == cpu.L.stride()
        assert torch.equal(dml.info.cpu(), cpu.info)
        assert torch.equal(dml.L.cpu(), dml.L.cpu().triu() if upper else dml.L.cpu().tril())

        def residual(x, a=a):
            x = x.cpu().double()
            return (x.mT @ x if upper else x @ x.mT) - a.double()

        assert_no_worse(residual(dml.L), residual(cpu.L), a, dtype)


@pytest.mark.parametrize("upper", [False, True])
@dtypes(torch.float32, torch.float64, torch.complex64)
def test_edges_of_blocks(upper, dtype):
    for sizes in EDGES:
        a = positive_definite(*sizes, dtype=dtype)
        for turned in (a, a.mT):
            dml, cpu = (torch.linalg.cholesky_ex(turned.to(d), upper=upper) for d in ("dml", "cpu"))
            assert not dml.info.cpu().any() and torch.equal(
                dml.L.cpu(), dml.L.cpu().triu() if upper else dml.L.cpu().tril()
            )

            def residual(x, a=turned):
                x = wide(x.cpu())
                return (x.mH @ x if upper else x @ x.mH) - wide(a)

            assert_no_worse(residual(dml.L), residual(cpu.L), turned, dtype)


@dtypes(torch.float32, torch.complex64)
def test_where_it_fails(dtype):
    """NaN, a zero and a negative number on the diagonal, in each of the blocks."""
    for n in (5, 8, 20, 32, 33, 64, 130):
        for at in sorted({0, n // 2, n - 1}):
            a = positive_definite(4, n, n, dtype=dtype)
            for i, value in enumerate((torch.nan, 0, -1)):
                a[i, at, at] = value
            dml, cpu = (torch.linalg.cholesky_ex(a.to(d)) for d in ("dml", "cpu"))
            assert dml.info.tolist() == cpu.info.tolist() == [at + 1] * 3 + [0]
            torch.testing.assert_close(dml.L[3].cpu(), cpu.L[3], rtol=1e-3, atol=1e-3)
            done = dml.L[:3, :at, :at].cpu()
            torch.testing.assert_close(done, cpu.L[:3, :at, :at], rtol=1e-3, atol=1e-3)


def test_one_triangle_is_read():
    a = positive_definite(40, 40, dtype=torch.float32)
    nan = torch.full_like(a, torch.nan)
    expected = torch.linalg.cholesky(a.to("dml"))
    assert torch.equal(torch.linalg.cholesky((a.tril() + nan.triu(1)).to("dml")), expected)
    upper = torch.linalg.cholesky((a.triu() + nan.tril(-1)).to("dml"), upper=True)
    assert torch.equal(upper, expected.mT)


@REALS
def test_not_positive_definite(dtype):
    a = positive_definite(6, 70, 70, dtype=dtype)
    for i, at in enumerate((0, 31, 32, 69)):
        a[i, at, at] = -1
    a[4, 40, 3] = torch.nan
    info = torch.linalg.cholesky_ex(a.to("dml")).info.cpu()
    assert info.tolist() == torch.linalg.cholesky_ex(a).info.tolist()
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"\(Batch element 0\).*leading minor of order 1 is not positive"
    ):
        torch.linalg.cholesky(a.to("dml"))


@pytest.mark.parametrize("upper", [False, True])
@REALS
def test_solve_and_inverse(upper, dtype):
    for sizes in SQUARES:
        a = positive_definite(*sizes, dtype=dtype)
        factor = torch.linalg.cholesky(a, upper=upper)
        b = general(*sizes[:-1], 5, dtype=dtype)
        dml, cpu = (torch.cholesky_solve(b.to(d), factor.to(d), upper).cpu().double() for d in ("dml", "cpu"))
        assert_no_worse(a.double() @ dml - b, a.double() @ cpu - b, cpu, dtype)
        dml, cpu = (torch.cholesky_inverse(factor.to(d), upper).cpu().double() for d in ("dml", "cpu"))
        one = torch.eye(sizes[-1], dtype=torch.float64)
        assert_no_worse(a.double() @ dml - one, a.double() @ cpu - one, cpu, dtype)


def test_out_and_old_names():
    a = positive_definite(2, 5, 5, dtype=torch.float32).to("dml")
    expected = torch.linalg.cholesky(a)
    out = torch.empty(0, device="dml")
    torch.linalg.cholesky(a, out=out)
    assert torch.equal(out, expected)
    if "aten::cholesky" not in operators.report().unknown:  # removed in torch 2.15
        assert torch.equal(torch.cholesky(a), expected)
        assert torch.equal(torch.cholesky(a, out=torch.empty(2, 5, 5, device="dml")), expected)
    assert torch.equal(
        torch.cholesky_solve(a, expected[0], out=torch.empty(0, device="dml")), torch.cholesky_solve(a, expected[0])
    )
    assert torch.equal(torch.cholesky_inverse(expected, out=a), torch.cholesky_inverse(expected))


def test_same_bits_again():
    a = positive_definite(200, 200, dtype=torch.float32).to("dml")
    assert torch.equal(torch.linalg.cholesky(a), torch.linalg.cholesky(a))


def test_gradients():
    a = positive_definite(2, 4, 4, dtype=torch.float64).to("dml").requires_grad_()
    b = general(2, 4, 2, dtype=torch.float64).to("dml").requires_grad_()
    assert torch.autograd.gradcheck(lambda a: torch.linalg.cholesky((a + a.mT) / 2), a)
    assert torch.autograd.gradcheck(lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky((a + a.mT) / 2)), (a, b))
    assert torch.autograd.gradcheck(lambda a: torch.cholesky_inverse(torch.linalg.cholesky((a + a.mT) / 2)), a)


def test_errors():
    for sizes in [(3,), (3, 4), (2, 4, 3)]:
        assert_same_error(torch.linalg.cholesky_ex, torch.ones(sizes))
        assert_same_error(torch.cholesky_inverse, torch.ones(sizes))
    assert_same_error(torch.linalg.cholesky_ex, torch.ones(3, 3, dtype=torch.int32))
    assert_same_error(torch.linalg.cholesky_ex, torch.ones(3, 3, dtype=torch.float16))


@pytest.mark.allow_fallback
def test_inverse_of_a_factor_with_a_zero_on_its_diagonal():
    assert_same_error(torch.cholesky_inverse, torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
