"""Eigenvalues of symmetric matrices, compared with the CPU; vectors by the equation that they have
to solve.
"""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same_outcome, to_device
from tests.support.matrices import REALS, assert_no_worse, general

SIZES = [(0, 0), (1, 1), (2, 2), (7, 7), (32, 32), (2, 0, 0), (0, 3, 3), (3, 5, 5), (2, 2, 4, 4)]
# One part; two parts, without and with padding; three levels of parts; batches of those.
DIVIDED = [(33, 33), (64, 64), (65, 65), (129, 129), (3, 40, 40), (2, 2, 33, 33)]


def spread(q):
    """The deviation of columns from orthonormality."""
    q = q.cpu().double()
    return q.mT @ q - torch.eye(q.shape[-1], dtype=torch.float64)


def check_eigh(a, uplo="L", roundings=4):
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

    assert_no_worse(residual(dml), residual(cpu), whole, a.dtype, roundings)
    assert_no_worse(spread(dml[1]), spread(cpu[1]), torch.eye(a.shape[-1]), a.dtype, roundings)


@pytest.mark.parametrize("uplo", ["L", "U"])
@REALS
def test_eigh(uplo, dtype):
    for sizes in SIZES + DIVIDED:
        check_eigh(general(*sizes, dtype=dtype), uplo)


def special(n):
    """Matrices in float64 whose eigenvalues are multiple, close, or of very different sizes, and
    tridiagonal ones.
    """
    x = general(n, n, dtype=torch.float64)
    q, places = torch.linalg.qr(x).Q, torch.arange(n, dtype=torch.float64)
    apart = 10.0 ** (-12 * places / n)
    tridiagonal = lambda d, e: torch.diag(d) + torch.diag(e, 1) + torch.diag(e, -1)  # noqa: E731
    glue = torch.where(torch.arange(n - 1) % 21 == 20, 1e-8, 1.0)
    yield torch.zeros(n, n)
    yield torch.eye(n)
    yield torch.eye(n).flip(0)
    yield torch.ones(n, n)
    yield torch.diag(places.flip(0))
    yield x[:, :3] @ x[:, :3].mT
    # Wilkinson's matrix, whose eigenvalues are close pairs; several of them glued together; and
    # second differences.
    yield tridiagonal((places - n // 2).abs(), torch.ones(n - 1))
    yield tridiagonal((places % 21 - 10).abs(), glue)
    yield tridiagonal(torch.full((n,), 2.0), -torch.ones(n - 1))
    yield (q * (1 + 1e-6 * places)) @ q.mT
    yield (q * torch.where(places % 3 == 0, -1.0, 1.0)) @ q.mT
    yield (q * apart) @ q.mT
    yield apart[:, None] * (x + x.mT) * apart
    yield apart.flip(0)[:, None] * (x + x.mT) * apart.flip(0)


@pytest.mark.parametrize("n", [12, 32, 33, 70])
@REALS
def test_eigh_of_special_matrices(dtype, n):
    # Sums of equal numbers are rounded in the same direction, so the error is proportional to their
    # number.
    for a in special(n):
        check_eigh(a.to(dtype), roundings=max(4, n / 4))


@REALS
def test_special_matrices_beside_each_other(dtype):
    a = torch.stack([a.to(dtype) for a in special(40)])
    check_eigh(a, roundings=10)


@pytest.mark.parametrize("n", [10, 40])
@REALS
def test_numbers_near_the_largest_and_the_least(dtype, n):
    x, limits = general(n, n, dtype=dtype).clamp(-3, 3), torch.finfo(dtype)
    # Some adapters flush subnormal numbers to zero.
    for scale in (limits.max / (8 * n), limits.smallest_normal / limits.eps):
        check_eigh(x * scale)


@pytest.mark.parametrize("n", [10, 40])
def test_the_other_triangle_is_not_read(n):
    a = general(n, n, dtype=torch.float32)
    for uplo, kept in (("L", a.tril()), ("U", a.triu())):
        above = torch.ones(n, n, dtype=torch.bool).triu(1)
        with_nan = kept.masked_fill(above if uplo == "L" else above.mT, torch.nan)
        pair = (torch.linalg.eigh(x.to("dml"), uplo) for x in (with_nan, kept))
        assert all(torch.equal(x, y) for x, y in zip(*pair, strict=True))


@REALS
def test_the_same_bits_twice(dtype):
    a = general(2, 100, 100, dtype=dtype).to("dml")
    for function in (torch.linalg.eigh, torch.linalg.eigvalsh):
        first, second = function(a), function(a)
        for x, y in zip(first, second, strict=True):
            assert torch.equal(x, y)


def test_layouts():
    a = general(40, 6, 40, dtype=torch.float32).transpose(0, 1)
    for x in (a, a.mT, general(2, 80, 80, dtype=torch.float32)[:, ::2, ::2], a[0].expand(3, 40, 40)):
        there, here = torch.linalg.eigh(to_device(x, "dml")), torch.linalg.eigh(x.contiguous().to("dml"))
        for one, other in zip(there, here, strict=True):
            assert torch.equal(one, other)


@pytest.mark.allow_fallback
@pytest.mark.parametrize("n", [5, 40])
def test_numbers_that_are_not_finite(n):
    """An error, or NaN: it depends on the size which one LAPACK gives."""
    a = torch.eye(n).expand(2, n, n).clone()
    a[1, 3, 2] = torch.nan
    assert_same_outcome(torch.linalg.eigh, a)
    assert_same_outcome(torch.linalg.eigvalsh, a[1])


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


def test_gradients_of_a_divided_matrix():
    a = general(40, 40, dtype=torch.float64)
    grads = []
    for device in ("dml", "cpu"):
        x = a.to(device).requires_grad_()
        values, vectors = torch.linalg.eigh(x + x.mT)
        (values.square().sum() + vectors[:, 3].square() @ torch.arange(40.0, dtype=x.dtype, device=device)).backward()
        grads.append(x.grad.cpu())
    torch.testing.assert_close(*grads)
