"""Eigenvalues of symmetric matrices against the CPU; vectors by what they are to solve."""

from __future__ import annotations

import pytest
import torch
from support.matrices import REALS, assert_no_worse, general

SIZES = [(0, 0), (1, 1), (2, 2), (7, 7), (32, 32), (2, 0, 0), (0, 3, 3), (3, 5, 5), (2, 2, 4, 4)]


def spread(q):
    """How far columns are from orthonormal."""
    q = q.cpu().double()
    return q.mT @ q - torch.eye(q.shape[-1], dtype=torch.float64)


def check_eigh(a, uplo="L"):
    """Compares eigenvalues, residuals and orthogonality with the CPU's."""
    dml, cpu = (torch.linalg.eigh(a.to(d), uplo) for d in ("dml", "cpu"))
    assert dml[0].shape == cpu[0].shape and dml[1].stride() == cpu[1].stride()
    triangle = a.tril() if uplo == "L" else a.triu().mT
    whole = (triangle + triangle.tril(-1).mT).double()
    exact = torch.linalg.eigvalsh(whole)
    column = lambda x: x[..., None]  # noqa: E731
    size = column(exact.abs().amax(-1, keepdim=True).expand(exact.shape)) if exact.numel() else column(exact)
    assert_no_worse(column(dml[0].cpu() - exact), column(cpu[0] - exact), size, a.dtype)
    values = torch.linalg.eigvalsh(a.to("dml"), uplo).cpu()
    assert_no_worse(column(values - exact), column(cpu[0] - exact), size, a.dtype)

    def residual(x):
        w, v = (t.cpu().double() for t in x)
        return whole @ v - v * w[..., None, :]

    assert_no_worse(residual(dml), residual(cpu), whole, a.dtype)
    assert_no_worse(spread(dml[1]), spread(cpu[1]), torch.eye(a.shape[-1]), a.dtype)


@pytest.mark.parametrize("uplo", ["L", "U"])
@REALS
def test_eigh(uplo, dtype):
    for sizes in SIZES:
        check_eigh(general(*sizes, dtype=dtype), uplo)


@REALS
def test_eigh_of_special_matrices(dtype):
    n = 12
    check_eigh(torch.zeros(n, n, dtype=dtype))
    check_eigh(torch.eye(n, dtype=dtype))
    check_eigh(torch.ones(n, n, dtype=dtype))
    check_eigh(torch.diag(torch.arange(n, 0, -1, dtype=dtype)))
    check_eigh(torch.eye(n, dtype=dtype).flip(0))
    x = general(n, 3, dtype=dtype)
    check_eigh(x @ x.mT)


def test_out():
    a = general(3, 4, 4, dtype=torch.float32).to("dml")
    outs = tuple(torch.empty(0, device="dml") for _ in range(2))
    torch.linalg.eigh(a, out=outs)
    assert all(torch.equal(x, y) for x, y in zip(outs, torch.linalg.eigh(a), strict=True))


def test_gradients():
    check = torch.autograd.gradcheck
    a = general(2, 4, 4, dtype=torch.float64).to("dml").requires_grad_()
    assert check(lambda a: torch.linalg.eigvalsh(a + a.mT), a)
    assert check(lambda a: torch.linalg.eigh(a + a.mT).eigenvectors.abs(), a)
