"""Sums, norms, products and convolutions of complex tensors, and gradients through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.compare import assert_matches_cpu, assert_same_outcome
from support.dtypes import dtypes
from support.layouts import lay_out, layouts

COMPLEX = (torch.complex64, torch.complex128)
REDUCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda z: (z.sum(), z.sum(1), z.sum(0, keepdim=True), z.sum((0, 1))),
    "mean": lambda z: (z.mean(), z.mean(1, keepdim=True)),
    "prod": lambda z: (z.prod(), z.prod(0), z.prod(1, keepdim=True), z[:0].prod(0)),
    "norm": lambda z: (z.norm(), z.norm(1, 0), torch.linalg.vector_norm(z, float("inf"), 1), z.norm(3)),
    "var": lambda z: (z.var(), z.var(0), z.std(1, keepdim=True)),
    "var_mean": lambda z: (*torch.var_mean(z, 1), *torch.std_mean(z)),
    "cumsum": lambda z: (z.cumsum(0), z.cumsum(1), z.clone().cumsum_(1)),
    "cumprod": lambda z: (z.cumprod(0), z.cumprod(1), z.clone().cumprod_(1)),
    "trace": lambda z: z.trace(),
    "any": lambda z: (z.any(), z.all(1), z.count_nonzero(0)),
    "renorm": lambda z: z.renorm(2, 0, 1.0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@layouts("zero_dim", "empty")
@dtypes(*COMPLEX)
def test_reductions(name: str, layout: str, dtype: torch.dtype) -> None:
    z = lay_out(torch.randn(5, 7, dtype=dtype), layout)
    tight = dtype == torch.complex128
    assert_matches_cpu(REDUCTIONS[name], z, rtol=1e-12 if tight else 1e-5, atol=1e-12 if tight else 1e-5, widen=False)


def test_reductions_to_other_places() -> None:
    z = torch.randn(5, 7, dtype=torch.complex64)
    for function in (
        lambda z: z.sum(dtype=torch.complex128),
        lambda z: z.prod(dtype=torch.complex128),
        lambda z: torch.sum(z, 0, out=torch.empty(0, dtype=torch.complex64, device=z.device)),
        lambda z: torch.sum(z, 0, out=torch.empty(7, dtype=torch.complex128, device=z.device)),
        lambda z: torch.cumsum(z, 0, out=torch.empty(7, 5, dtype=torch.complex64, device=z.device).mT),
        lambda z: z.reshape(-1)[0].sum(),
        lambda z: z[:0].sum(0),
    ):
        assert_matches_cpu(function, z, rtol=1e-5, atol=1e-5, widen=False)


PRODUCTS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "mm": lambda a, b: a[0] @ b[0],
    "mm of conjugates": lambda a, b: b[0].mH @ a[0].mH,
    "mm of a transposed": lambda a, b: a[0].mT.contiguous().mT @ b[0].mT.contiguous().mT,
    "bmm": lambda a, b: a @ b,
    "addmm": lambda a, b: torch.addmm(a[0, :, :1], a[0], b[0], beta=2j, alpha=1 - 1j),
    "addmm without self": lambda a, b: torch.addmm(a[0, :, :1] * float("nan"), a[0], b[0], beta=0),
    "baddbmm": lambda a, b: torch.baddbmm((a @ b).exp(), a, b, alpha=0.5),
    "addbmm": lambda a, b: torch.addbmm(a[0] @ b[0], a, b, beta=1j),
    "mv": lambda a, b: (a[0] @ b[0, :, 0], torch.addmv(a[0, :, 0], a[0], b[0, :, 0], beta=1j)),
    "dot": lambda a, b: (torch.dot(a[0, 0], b[0, :, 0]), torch.vdot(a[0, 0], b[0, :, 0]), torch.inner(a[0], a[1])),
    "einsum": lambda a, b: torch.einsum("bij,bjk->bk", a, b.conj()),
    "linear": lambda a, b: F.linear(a, b[0].mT, a[0, :3, 0].repeat(2)[:4]),
    "nothing to sum": lambda a, b: a[0, :, :0] @ b[0, :0],
    "out": lambda a, b: torch.mm(a[0], b[0], out=torch.empty(0, dtype=a.dtype, device=a.device)),
    "matrix_power": lambda a, b: torch.linalg.matrix_power(a[0, :3, :3], 3),
    "outer": lambda a, b: torch.outer(a[0, 0], b[0, 0]),
}


@pytest.mark.parametrize("name", PRODUCTS)
@dtypes(*COMPLEX)
def test_products(name: str, dtype: torch.dtype) -> None:
    a, b = torch.randn(2, 3, 5, dtype=dtype), torch.randn(2, 5, 4, dtype=dtype)
    tight = dtype == torch.complex128
    assert_matches_cpu(PRODUCTS[name], a, b, rtol=1e-12 if tight else 1e-5, atol=1e-12 if tight else 2e-5, widen=False)


def test_wrong_shapes_are_refused() -> None:
    a, b = torch.randn(3, 5, dtype=torch.complex64), torch.randn(4, 3, dtype=torch.complex64)
    for function in (
        torch.mm,
        lambda a, b: torch.mm(a, b[0]),
        lambda a, b: torch.bmm(a, b),
        lambda a, b: torch.mv(a, b[0]),
        lambda a, b: torch.dot(a[0], b[0]),
        lambda a, b: torch.mm(a, b.mT.to(torch.complex128)[:0]),
        lambda a, b: torch.addmm(a, a.mT, b.mT.mT),
    ):
        assert_same_outcome(function, a, b)


def test_products_of_odd_sizes_are_accurate() -> None:
    a, b = torch.randn(37, 129, dtype=torch.complex64), torch.randn(129, 65, dtype=torch.complex64)
    exact = a.to(torch.complex128) @ b.to(torch.complex128)
    ours, theirs = ((x.to(torch.complex128) - exact).abs().max() for x in ((a.to("dml") @ b.to("dml")).cpu(), a @ b))
    assert ours <= 3 * theirs


def test_convolution() -> None:
    x, w = torch.randn(2, 3, 9, dtype=torch.complex64), torch.randn(4, 3, 3, dtype=torch.complex64)
    bias = torch.randn(4, dtype=torch.complex64)
    assert_matches_cpu(lambda x, w, b: F.conv1d(x, w, b, padding=1), x, w, bias, rtol=1e-5, atol=2e-5, widen=False)


GRADIENTS: dict[str, Callable[..., torch.Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in ("exp", "log", "sqrt", "sin", "tanh", "acos", "atan", "abs", "angle", "reciprocal", "sgn")
    },
    "mul": lambda z: z * z.conj() * (1 + 2j),
    "div": lambda z: z / (z.roll(1, 0) + 3),
    "pow": lambda z: z ** (1.5 + 0.5j),
    "mm": lambda z: z @ z.mH,
    "sum": lambda z: z.sum(0).abs(),
    "prod": lambda z: z.prod(1),
    "cumprod": lambda z: z.cumprod(1),
    "norm": lambda z: torch.linalg.vector_norm(z, dim=1),
    "index": lambda z: z[[0, 0, 2]],
    "parts": lambda z: z.real * z.imag,
    "polar": lambda z: torch.polar(z.real.exp(), z.imag),
    "where": lambda z: torch.where(z.real > 0, z, z.conj() * 2),
    "var": lambda z: z.var(1),
    "cat": lambda z: torch.cat([z, z.real]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    z = (torch.randn(3, 4, dtype=torch.complex128) + 0.3).to("dml").requires_grad_()
    assert torch.autograd.gradcheck(GRADIENTS[name], z)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
@pytest.mark.parametrize("foreach", [False, True])
def test_training(optimizer: type[torch.optim.Optimizer], foreach: bool) -> None:
    """A complex linear map is learnt as on the CPU."""

    def run(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        w = w.clone().requires_grad_()
        steps = optimizer([w], lr=0.05, foreach=foreach)
        for _ in range(3):
            steps.zero_grad()
            (x @ w - x).abs().square().mean().backward()
            steps.step()
        return w.detach()

    w, x = torch.randn(4, 4, dtype=torch.complex64), torch.randn(8, 4, dtype=torch.complex64)
    assert_matches_cpu(run, w, x, rtol=1e-4, atol=1e-5, widen=False)
