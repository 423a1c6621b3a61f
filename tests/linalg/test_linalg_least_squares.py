"""Least squares with every driver, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same, assert_same_error
from tests.support.matrices import REALS, assert_no_worse, general

DRIVERS = ["gels", "gelsy", "gelsd", "gelss"]
# Sizes of the matrices, and numbers of right-hand sides.
PROBLEMS = [
    ((5, 5), 2),
    ((9, 4), 3),
    ((4, 9), 3),
    ((3, 7, 2), 1),
    ((2, 3, 5, 6), 2),
    ((40, 35), 2),
    ((70, 3), 2),
    ((1, 1), 1),
]
EMPTY = [((3, 0), 2), ((0, 3), 2), ((0, 0), 2), ((0, 3, 2), 2), ((2, 0, 2), 3), ((2, 3, 0), 1)]


def solve(a, b, driver, device, **kwargs):
    return torch.linalg.lstsq(a.to(device), b.to(device), driver=driver, **kwargs)


def check(a, b, driver):
    """Compares shapes, dtypes and strides, and the solutions with those in float64."""
    dml, cpu = (solve(a, b, driver, d) for d in ("dml", "cpu"))
    exact = solve(a.double(), b.double(), driver, "cpu")
    for x, y in zip(dml, cpu, strict=True):
        assert (x.shape, x.dtype, x.stride()) == (y.shape, y.dtype, y.stride())
    assert torch.equal(dml.rank.cpu(), cpu.rank)
    if not a.numel():
        assert_same(tuple(dml), tuple(cpu))
        return
    if a.dtype == torch.float64:
        for x, y in zip(dml, cpu, strict=True):
            torch.testing.assert_close(x.cpu(), y, rtol=1e-9, atol=1e-10)
        return
    column = lambda x: x if x.dim() == b.dim() and b.dim() == a.dim() else x[..., None]  # noqa: E731
    scale = column(exact.solution) * 8 * torch.linalg.cond(a.double()).amax()
    error = lambda x: column(x.solution.cpu() - exact.solution)  # noqa: E731
    assert_no_worse(error(dml), error(cpu), scale, a.dtype)
    torch.testing.assert_close(dml.residuals.cpu(), cpu.residuals, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dml.singular_values.cpu(), cpu.singular_values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (2, 2, 3)])
def test_results_with_gradients(driver, sizes):
    """The solution and the residuals; what a driver leaves empty is a tensor of its own."""
    a, b = general(*sizes, dtype=torch.float32), general(*sizes[:-1], 2, dtype=torch.float32)
    dml, cpu = (solve(a.requires_grad_(), b, driver, device) for device in ("dml", "cpu"))
    assert [x.requires_grad for x in dml] == [x.requires_grad for x in cpu]
    assert len({id(x) for x in dml}) == 4


@pytest.mark.parametrize("driver", DRIVERS)
@REALS
def test_lstsq(driver, dtype):
    for sizes, k in PROBLEMS:
        a = general(*sizes, dtype=dtype)
        check(a, general(*sizes[:-1], k, dtype=dtype) + 1, driver)


@pytest.mark.parametrize("driver", DRIVERS)
def test_empty(driver):
    for sizes, k in EMPTY:
        check(torch.ones(sizes), torch.ones(*sizes[:-1], k), driver)


@pytest.mark.parametrize("driver", DRIVERS)
def test_vectors_and_broadcasting(driver):
    a = general(2, 7, 3, dtype=torch.float64)
    check(a, general(2, 7, dtype=torch.float64), driver)
    check(a[0], general(7, dtype=torch.float64), driver)
    check(a, general(1, 7, 2, dtype=torch.float64), driver)
    check(a[:1], general(2, 7, 2, dtype=torch.float64), driver)


@pytest.mark.parametrize("driver", DRIVERS[1:])
def test_matrices_of_lower_rank(driver):
    """Compared with the CPU's gelsd: its gelsy starts from uninitialised pivots, and sometimes
    finds other ranks.
    """
    a = general(8, 3, dtype=torch.float64) @ general(3, 6, dtype=torch.float64)
    b = general(8, 2, dtype=torch.float64)
    graded = torch.diag(torch.tensor([1.0, 0.1, 1e-3], dtype=torch.float64))
    for x, y, rcond in (
        (a, b, None),
        (a.mT, b[:6], None),
        (torch.zeros(4, 3).double(), b[:4], None),
        (graded, b[:3], 0.01),
    ):
        dml, cpu = solve(x, y, driver, "dml", rcond=rcond), solve(x, y, "gelsd", "cpu", rcond=rcond)
        assert torch.equal(dml.rank.cpu(), cpu.rank)
        torch.testing.assert_close(dml.solution.cpu(), cpu.solution, rtol=1e-9, atol=1e-10)


def test_default_driver():
    """As on CUDA the rank is not computed; matrices that do not have full rank get the smallest
    solution nevertheless.
    """
    a, b = general(6, 3, dtype=torch.float64), general(6, 2, dtype=torch.float64)
    dml, cpu = torch.linalg.lstsq(a.to("dml"), b.to("dml")), torch.linalg.lstsq(a, b, driver="gels")
    assert_same(tuple(dml), tuple(cpu))
    a[:, 1] = 0
    assert_same(
        torch.linalg.lstsq(a.to("dml"), b.to("dml")).solution, torch.linalg.lstsq(a, b, driver="gelsd").solution
    )


def test_out():
    a, b = general(3, 6, 4, dtype=torch.float32).to("dml"), general(3, 6, 2, dtype=torch.float32).to("dml")
    outs = tuple(torch.empty(0, device="dml", dtype=torch.int64 if i == 2 else torch.float32) for i in range(4))
    torch.linalg.lstsq(a, b, driver="gelsd", out=outs)
    assert all(torch.equal(x, y) for x, y in zip(outs, torch.linalg.lstsq(a, b, driver="gelsd"), strict=True))


def test_gradients():
    a, b = (general(2, *sizes, dtype=torch.float64).to("dml").requires_grad_() for sizes in ((5, 3), (5, 2)))
    assert torch.autograd.gradcheck(lambda a, b: torch.linalg.lstsq(a, b).solution, (a, b))


def test_errors():
    lstsq = torch.linalg.lstsq
    assert_same_error(lstsq, torch.ones(3), torch.ones(3))
    assert_same_error(lstsq, torch.ones(3, 2), torch.ones(2))
    assert_same_error(lstsq, torch.ones(2, 3, 2), torch.ones(2, 4, 2))
    assert_same_error(lstsq, torch.ones(3, 2), torch.ones(1, 3, 2))
    assert_same_error(lstsq, torch.ones(3, 2), torch.ones(3, 2).double())
    assert_same_error(lstsq, torch.ones(3, 2).half(), torch.ones(3, 2).half())
    assert_same_error(lambda a, b: lstsq(a, b, driver="other"), torch.ones(3, 2), torch.ones(3, 2))


@pytest.mark.allow_fallback
def test_no_full_rank():
    a = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert_same_error(lambda a, b: torch.linalg.lstsq(a, b, driver="gels"), a, torch.ones(3, 2))
