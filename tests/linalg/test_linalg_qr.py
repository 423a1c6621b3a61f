"""QR decompositions and products of reflections, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same_error
from tests.support.dtypes import dtypes
from tests.support.matrices import EDGES, REALS, SQUARES, assert_no_worse, general, wide

SIZES = [*SQUARES, (5, 3), (3, 5), (100, 17), (17, 100), (300, 40), (2, 40, 70), (3, 0), (0, 4), (2, 3, 1)]


def spread(q):
    """The deviation of columns from orthonormality."""
    q = q.cpu().double()
    return q.mT @ q - torch.eye(q.shape[-1], dtype=torch.float64)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@REALS
def test_qr(mode, dtype):
    for sizes in SIZES:
        a = general(*sizes, dtype=dtype)
        dml, cpu = (torch.linalg.qr(a.to(d), mode) for d in ("dml", "cpu"))
        assert dml.R.shape == cpu.R.shape and dml.Q.shape == cpu.Q.shape
        assert torch.equal(dml.R.cpu(), dml.R.cpu().triu())
        residual = lambda x: x.R.cpu().double().mT @ x.R.cpu().double() - a.double().mT @ a.double()  # noqa: B023, E731
        if mode != "r":
            assert dml.Q.stride() == cpu.Q.stride() and dml.R.stride() == cpu.R.stride()
            assert_no_worse(spread(dml.Q), spread(cpu.Q), torch.eye(dml.Q.shape[-1]), dtype)
            residual = lambda x: x.Q.cpu().double() @ x.R.cpu().double() - a.double()  # noqa: B023, E731
            assert_no_worse(residual(dml), residual(cpu), a, dtype)
        else:
            assert_no_worse(residual(dml), residual(cpu), a.mT @ a, dtype)


@dtypes(torch.float32, torch.float64, torch.complex64)
def test_edges_of_panels(dtype):
    for sizes in [*EDGES[:-1], (1030, 40), (2100, 20), (5000, 20), (9000, 5), (3, 8, 32), (3, 100, 33)]:
        a = general(*sizes, dtype=dtype)
        q, r = (wide(t.cpu()) for t in torch.linalg.qr(a.to("dml")))
        identity = torch.eye(q.shape[-1], dtype=q.dtype)
        # The CPU's own errors grow with the root of the size.
        roundings = min(sizes[-2:]) ** 0.5
        assert_no_worse((q.mH @ q - identity) / roundings, torch.zeros(1, 1), identity, dtype)
        assert_no_worse((q @ r - a) / roundings, torch.zeros(1, 1), a, dtype)


@REALS
def test_columns_of_all_sizes(dtype):
    """Columns of small, ordinary and large numbers, of zeros, and some that are already
    triangular.
    """
    tiny, huge = torch.finfo(dtype).tiny, torch.finfo(dtype).max / 64
    a = general(70, 40, dtype=dtype)
    a[:, ::5] *= tiny**0.5 / 16
    a[:, 1::5] *= huge**0.5
    a[:, 2::10] = 0
    a[7, 3::10] = huge
    q, r = (t.cpu().double() for t in torch.linalg.qr(a.to("dml")))
    assert_no_worse(spread(q), torch.zeros(1, 1), torch.eye(40), dtype)
    scale = a.double().abs().amax(0).clamp(min=1e-300)
    assert_no_worse((q @ r - a) / scale, torch.zeros(1, 1), a / scale, dtype)
    upper = general(40, 40, dtype=dtype).triu()
    q, r = (t.cpu() for t in torch.linalg.qr(upper.to("dml")))
    assert torch.equal(q, torch.eye(40, dtype=dtype)) and torch.equal(r, upper)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite(value):
    for sizes in ((20, 8), (100, 70)):
        a = general(*sizes, dtype=torch.float32)
        a[sizes[0] // 2, sizes[1] // 2] = value
        q, r = (t.cpu() for t in torch.linalg.qr(a.to("dml")))
        expected = torch.linalg.qr(a[:, : sizes[1] // 2]).R.abs()
        torch.testing.assert_close(r[: sizes[1] // 2, : sizes[1] // 2].abs(), expected, rtol=1e-4, atol=1e-4)
        assert not q.isfinite().all() and not r[:, sizes[1] // 2].isfinite().all()


@REALS
def test_reflections(dtype):
    for sizes in SIZES:
        a = general(*sizes, dtype=dtype)
        (dml, dml_tau), (cpu, cpu_tau) = (torch.geqrf(a.to(d)) for d in ("dml", "cpu"))
        assert dml.shape == cpu.shape and dml_tau.shape == cpu_tau.shape
        if sizes[-2] >= sizes[-1]:
            check_products(torch.linalg.householder_product, cpu, cpu_tau)
        for left in (True, False):
            c = general(*sizes[:-2], *((sizes[-2], 4) if left else (4, sizes[-2])), dtype=dtype)
            check_products(lambda *t, left=left: torch.ormqr(*t, left, True), cpu, cpu_tau, c)
            check_products(lambda *t, left=left: torch.ormqr(*t, left, False), cpu, cpu_tau, c)


def check_products(function, *tensors):
    """Compares the device's and the CPU's results with the product in float64, if that is more
    accurate.
    """
    exact = function(*(t.double() for t in tensors))
    dml, cpu = (function(*(t.to(d) for t in tensors)).cpu().double() for d in ("dml", "cpu"))
    if tensors[0].dtype == torch.float64:
        torch.testing.assert_close(dml, cpu, rtol=1e-12, atol=1e-13)
    else:
        assert_no_worse(dml - exact, cpu - exact, exact, tensors[0].dtype)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scales(scale):
    a = general(40, 20, dtype=torch.float32) * scale
    q, r = (t.cpu() for t in torch.linalg.qr(a.to("dml")))
    assert_no_worse(spread(q), torch.zeros(1, 1), torch.eye(20), torch.float32)
    torch.testing.assert_close(q @ (r / scale), a / scale, rtol=1e-5, atol=1e-5)


def test_columns_of_zeros():
    a = general(6, 4, dtype=torch.float64)
    a[:, 1] = 0
    a[1:, 0] = 0
    q, r = torch.linalg.qr(a.to("dml"))
    torch.testing.assert_close((q @ r).cpu(), a)
    assert_no_worse(spread(q), torch.zeros(1, 1), torch.eye(4), torch.float64)


def test_out():
    a = general(3, 6, 4, dtype=torch.float32).to("dml")
    outs = torch.empty(0, device="dml"), torch.empty(0, device="dml")
    assert torch.linalg.qr(a, out=outs)[0] is outs[0]
    assert torch.equal(outs[0], torch.linalg.qr(a).Q) and torch.equal(outs[1], torch.linalg.qr(a).R)


def test_gradients():
    check = torch.autograd.gradcheck
    for sizes in ((2, 4, 3), (3, 3), (3, 5)):
        a = general(*sizes, dtype=torch.float64).to("dml").requires_grad_()
        assert check(lambda a: torch.linalg.qr(a), a)
    a = general(4, 3, dtype=torch.float64).to("dml").requires_grad_()
    tau = torch.rand(3, dtype=torch.float64).to("dml").requires_grad_()
    assert check(torch.linalg.householder_product, (a, tau))


def test_errors():
    assert_same_error(torch.linalg.qr, torch.ones(3))
    assert_same_error(lambda a: torch.linalg.qr(a, "full"), torch.ones(3, 3), words=False)
    assert_same_error(torch.geqrf, torch.ones(3))
    assert_same_error(torch.linalg.householder_product, torch.ones(3, 4), torch.ones(3))
    assert_same_error(torch.linalg.householder_product, torch.ones(4, 3), torch.ones(4))
    for sizes, tau, other in (
        ((5, 3), (4,), (5, 2)),
        ((5, 3), (2,), (5, 2)),
        ((3, 5), (5,), (3, 3)),
        ((5, 3), (3,), (2, 5)),
        ((5, 3), (), (5, 2)),
        ((2, 5, 3), (3,), (5, 2)),
        ((2, 5, 3), (2, 3), (5, 2)),
        ((2, 5, 3), (2, 2, 3), (2, 5, 2)),
        ((2, 5, 3), (3, 3), (2, 5, 2)),
        ((2, 5, 3), (2, 3), (3, 5, 2)),
    ):
        assert_same_error(torch.ormqr, torch.ones(sizes), torch.ones(tau), torch.ones(other))
