"""Singular value decompositions, compared with the CPU; vectors by the equation that they have to
solve.
"""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same_error, to_device
from tests.support.matrices import REALS, assert_no_worse, general, singular_values

SIZES = [
    (1, 1),
    (2, 2),
    (7, 7),
    (33, 33),
    (5, 3),
    (3, 5),
    (40, 7),
    (7, 40),
    (3, 6, 4),
    (2, 2, 17, 31),
    (70, 70),
    (129, 66),
    (2, 65, 80),
    (1, 9),
    (9, 1),
]
EMPTY = [(0, 0), (3, 0), (0, 3), (2, 0, 3), (2, 3, 0), (0, 3, 2), (0, 2, 3)]


def spread(q):
    """The deviation of columns from orthonormality."""
    q = q.cpu().double()
    return q.mT @ q - torch.eye(q.shape[-1], dtype=torch.float64)


def check_svd(a, full=False, roundings=6):
    """Compares values, residuals, orthogonality and strides with the CPU's."""
    dml, cpu = (torch.linalg.svd(a.to(d), full_matrices=full) for d in ("dml", "cpu"))
    for x, y in zip(dml, cpu, strict=True):
        assert x.shape == y.shape and x.stride() == y.stride() and x.dtype == y.dtype
    exact = singular_values(a)
    column = lambda x: x[..., None]  # noqa: E731
    largest = column(exact.amax(-1, keepdim=True).expand(exact.shape))
    for values in (dml.S, torch.linalg.svdvals(a.to("dml"))):
        values = values.cpu()
        assert torch.equal(values, values.sort(-1, descending=True).values)
        assert_no_worse(column(values - exact), column(cpu.S - exact), largest, a.dtype)

    def residual(x):
        u, s, vh = (t.cpu().double() for t in x)
        k = s.shape[-1]
        return a.double() - (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]

    # LAPACK's own error is between 1.5 and 8.4 for the special matrices, depending on matrix and
    # processor.
    assert_no_worse(residual(dml), residual(cpu), a, a.dtype, roundings)
    for x, y in ((dml.U, cpu.U), (dml.Vh.mT, cpu.Vh.mT)):
        assert_no_worse(spread(x), spread(y), torch.eye(x.shape[-1]), a.dtype, roundings - 2)


@REALS
def test_svd(dtype):
    for sizes in SIZES:
        check_svd(general(*sizes, dtype=dtype))
    for sizes in ((5, 3), (3, 5), (2, 40, 7)):
        check_svd(general(*sizes, dtype=dtype), full=True)


@pytest.mark.parametrize("full", [False, True])
def test_empty(full):
    for sizes in EMPTY:
        a = torch.empty(sizes)
        dml, cpu = (torch.linalg.svd(a.to(d), full_matrices=full) for d in ("dml", "cpu"))
        for x, y in zip(dml, cpu, strict=True):
            assert x.shape == y.shape and x.stride() == y.stride() and torch.equal(x.cpu(), y)
        assert torch.linalg.svdvals(a.to("dml")).shape == cpu.S.shape


@pytest.mark.parametrize("n", [20, 70])
@REALS
def test_special_matrices(dtype, n):
    graded = 10.0 ** (-20 / n * torch.arange(n, dtype=torch.float64))
    x = general(n, 3, dtype=torch.float64)
    for a in (
        torch.zeros(n, 3),
        torch.eye(n).flip(0),
        torch.ones(n, n),
        torch.diag(graded),
        general(n, n, dtype=torch.float64) * graded,
        general(n, n, dtype=torch.float64) * graded.flip(0),
        x @ x.mT,
        torch.linalg.qr(general(40, 40, dtype=torch.float64)).Q,
        1 / (1 + torch.arange(n) + torch.arange(n)[:, None]),
        general(2, n, n, dtype=torch.float64) * torch.tensor([1e-30, 1e30])[:, None, None],
    ):
        # As for eigenvalues: sums of equal numbers are rounded in the same direction.
        check_svd(a.to(dtype), full=True, roundings=max(6, n / 4))


@REALS
def test_the_same_bits_twice(dtype):
    a = general(2, 80, 70, dtype=dtype).to("dml")
    first, second = torch.linalg.svd(a, full_matrices=False), torch.linalg.svd(a, full_matrices=False)
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    assert torch.equal(torch.linalg.svdvals(a), torch.linalg.svdvals(a))


def test_tiny_values():
    """Columns of very different norms keep their digits if the matrix's columns do."""
    scales = 10.0 ** torch.tensor([0, -3, 2, -5], dtype=torch.float64)
    for a in (general(9, 4, dtype=torch.float64), general(90, 80, dtype=torch.float64)):
        a = (torch.linalg.qr(a).Q * scales.repeat(a.shape[1] // 4)).to(torch.float32)
        exact = torch.linalg.svdvals(a.double())
        torch.testing.assert_close(torch.linalg.svdvals(a.to("dml")).cpu().double(), exact, rtol=1e-5, atol=0)


def test_layouts():
    a = general(6, 5, 4, dtype=torch.float32)
    for x in (a.mT, a[::2, 1:, ::3], a.permute(2, 0, 1), a[0].expand(3, 5, 4)):
        u, s, vh = (t.cpu() for t in torch.linalg.svd(to_device(x, "dml"), full_matrices=False))
        torch.testing.assert_close((u * s[..., None, :]) @ vh, x, rtol=1e-5, atol=1e-5)


def test_batches_do_not_mix():
    a = general(5, 12, 9, dtype=torch.float32) * 10.0 ** torch.arange(-2, 3)[:, None, None]
    together = torch.linalg.svd(a.to("dml"), full_matrices=False)
    for i, one in enumerate(a):
        for x, y in zip(together, torch.linalg.svd(one.to("dml"), full_matrices=False), strict=True):
            torch.testing.assert_close(x[i].cpu(), y.cpu(), rtol=1e-4, atol=1e-5)


def test_what_is_made_of_it():
    a, batch = general(6, 4, dtype=torch.float64), general(3, 4, 5, dtype=torch.float64)
    for x in (a, batch, batch.mT @ batch):
        assert_matches_cpu(torch.linalg.pinv, x)
        assert_matches_cpu(torch.linalg.matrix_rank, x)
        assert_matches_cpu(lambda x: torch.linalg.matrix_norm(x, "nuc"), x)
        assert_matches_cpu(lambda x: torch.linalg.matrix_norm(x, 2), x)
        assert_matches_cpu(lambda x: torch.linalg.matrix_norm(x, -2), x)
    assert_matches_cpu(torch.linalg.cond, a)
    assert_matches_cpu(lambda x: torch.svd(x, compute_uv=False).S, a)
    torch.pca_lowrank(a.to("dml"), q=2)


def test_out():
    a = general(3, 6, 4, dtype=torch.float32).to("dml")
    outs = tuple(torch.empty(0, device="dml") for _ in range(3))
    torch.linalg.svd(a, full_matrices=False, out=outs)
    assert all(torch.equal(x, y) for x, y in zip(outs, torch.linalg.svd(a, full_matrices=False), strict=True))
    values = torch.empty(0, device="dml")
    assert torch.linalg.svdvals(a, out=values) is values and values.shape == (3, 4)


def test_gradients():
    check = torch.autograd.gradcheck
    for sizes in ((2, 4, 3), (3, 3), (3, 5)):
        a = general(*sizes, dtype=torch.float64).to("dml").requires_grad_()
        assert check(torch.linalg.svdvals, a)
        assert check(lambda a: [x.abs() for x in torch.linalg.svd(a, full_matrices=False)], a)
        assert check(torch.linalg.pinv, a)


def test_errors():
    assert_same_error(torch.linalg.svd, torch.ones(3))
    assert_same_error(torch.linalg.svd, torch.ones(3, 3, dtype=torch.int32))
    assert_same_error(torch.linalg.svd, torch.ones(3, 3, dtype=torch.float16))
    assert_same_error(lambda a: torch.linalg.svd(a, driver="gesvd"), torch.ones(3, 3))


@pytest.mark.allow_fallback
def test_numbers_that_are_not_finite():
    a = torch.ones(2, 4, 3)
    a[1, 2, 1] = torch.nan
    assert_same_error(torch.linalg.svd, a)
    assert_same_error(torch.linalg.svdvals, a[1])
    a[1, 2, 1] = torch.inf
    assert_same_error(torch.linalg.svd, a[1])
    large = torch.ones(70, 70)
    large[3, 4] = torch.nan
    assert_same_error(torch.linalg.svd, large)
