"""Exponentials of matrices, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same_error, to_device
from tests.support.dtypes import dtypes
from tests.support.matrices import REALS, assert_no_worse, general

# 1-norms on both sides of the limits of each polynomial.
NORMS = [1e-10, 1e-8, 1e-5, 1e-3, 0.02, 0.2, 0.4, 0.57, 0.8, 1.3, 2.5, 4.0, 30.0]


def of_norm(norm, *sizes, dtype):
    x = general(*sizes, dtype=torch.float64)
    return (x * norm / torch.linalg.matrix_norm(x, 1, keepdim=True)).to(dtype)


def check(a):
    """Compares with the CPU, in float64 if that is more accurate."""
    dml, cpu = (torch.linalg.matrix_exp(to_device(a, d)) for d in ("dml", "cpu"))
    assert (dml.shape, dml.dtype, dml.stride()) == (cpu.shape, cpu.dtype, cpu.stride())
    if a.dtype == torch.float32:
        exact = torch.linalg.matrix_exp(a.double())
        assert_no_worse(dml.cpu() - exact, cpu - exact, exact, a.dtype)
    else:
        scale = torch.linalg.matrix_norm(cpu, keepdim=True).clamp(min=1)
        torch.testing.assert_close(dml.cpu() / scale, cpu / scale, rtol=0, atol=1e-13)


@REALS
def test_matrix_exp(dtype):
    for norm in NORMS:
        for n in (1, 2, 7, 40):
            check(of_norm(norm, n, n, dtype=dtype))


@REALS
def test_batches_of_different_norms(dtype):
    norms = torch.tensor(NORMS, dtype=torch.float64)
    order = torch.randperm(len(NORMS), generator=torch.Generator().manual_seed(0))
    check(of_norm(norms[order][:, None, None], len(NORMS), 6, 6, dtype=dtype))
    check(of_norm(1.0, 2, 3, 5, 5, dtype=dtype))


def test_special_matrices():
    for a in (torch.zeros(4, 4), torch.eye(5), torch.full((3, 3), -30.0), torch.ones(6, 6).triu(1)):
        check(a)


def test_numbers_that_are_not_finite():
    big = torch.diag(torch.tensor([-1e30, -1e30]))
    bad = [torch.tensor([[x, 0.0], [0.0, 1.0]]) for x in (torch.nan, torch.inf, 1e30)]
    a = torch.stack([torch.eye(2), big, *bad])
    torch.testing.assert_close(torch.matrix_exp(a.to("dml")).cpu(), torch.matrix_exp(a), equal_nan=True)


@dtypes(torch.float16, torch.bfloat16)
def test_halves(dtype):
    a = of_norm(0.5, 4, 4, dtype=dtype)
    exact = torch.matrix_exp(a.double())
    result = torch.matrix_exp(a.to("dml"))
    assert result.dtype == dtype
    torch.testing.assert_close(
        result.cpu().double(), exact, rtol=torch.finfo(dtype).eps, atol=torch.finfo(dtype).eps / 8
    )


@dtypes(torch.complex64, torch.complex128)
def test_complex_numbers(dtype):
    real = torch.float32 if dtype == torch.complex64 else torch.float64
    a = torch.complex(*(of_norm(torch.tensor(NORMS)[:, None, None], len(NORMS), 5, 5, dtype=real) for _ in range(2)))
    for x in (a, a[3:5].mH, a[:, :1, :1], 1j * a[7].mT, torch.ones(0, 3, 3, dtype=dtype)):
        dml = torch.linalg.matrix_exp(to_device(x, "dml"))
        exact = torch.linalg.matrix_exp(x.to(torch.complex128))
        scale = torch.linalg.matrix_norm(exact, keepdim=True).clamp(min=1)
        # As above: in float64 the CPU's rounding error counts, too.
        atol = 1e-13 if dtype == torch.complex128 else 30 * torch.finfo(real).eps
        assert dml.dtype == dtype
        torch.testing.assert_close(dml.cpu() / scale, exact / scale, rtol=0, atol=atol, check_dtype=False)
    x = (a[10] / 8).to("dml").requires_grad_()
    if dtype == torch.complex128:
        assert torch.autograd.gradcheck(torch.linalg.matrix_exp, x)


def test_layouts():
    a = of_norm(1.0, 4, 6, 6, dtype=torch.float32)
    for x in (a.mT, a[::2, 1:5, 1:5], a[0].expand(3, 6, 6), a.permute(1, 0, 2)[:, :, :4]):
        check(x)
    for sizes in ((0, 0), (2, 0, 0), (0, 3, 3)):
        check(torch.ones(sizes))


def test_gradients():
    a = of_norm(torch.tensor([0.1, 2.0])[:, None, None], 2, 3, 3, dtype=torch.float64).to("dml").requires_grad_()
    assert torch.autograd.gradcheck(torch.linalg.matrix_exp, a)
    assert torch.autograd.gradgradcheck(torch.linalg.matrix_exp, a[:1].detach().requires_grad_())


@pytest.mark.parametrize("a", [torch.ones(3), torch.ones(3, 2), torch.ones(3, 3, dtype=torch.int32)])
def test_errors(a):
    assert_same_error(torch.linalg.matrix_exp, a)
