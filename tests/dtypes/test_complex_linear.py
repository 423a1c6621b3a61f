"""Sums, norms, products and convolutions of complex tensors, and gradients through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_outcome
from tests.support.dtypes import dtypes
from tests.support.layouts import lay_out, layouts

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


# Conversions from complex to real numbers, and the reverse.
TARGETS = [
    *((torch.complex64, to) for to in (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex128)),
    *((source, to) for source in (torch.float32, torch.int32, torch.bool) for to in COMPLEX),
]


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(
    ("name", "source", "to"),
    [
        (name, source, to)
        for source, to in TARGETS
        for name in ("sum", "mean", "prod", "cumsum", "cumprod", "nansum")
        if not (name == "mean" and to in (torch.int64, torch.bool))
        and not (name == "nansum" and (source.is_complex or source.is_floating_point))
        and not (name.startswith("cum") and to == torch.bool)
    ],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_reductions_between_reals_and_complex_numbers(name: str, source: torch.dtype, to: torch.dtype) -> None:
    z = (3 * torch.randn(4, 5, dtype=torch.complex64 if source.is_complex else torch.float32)).to(source)
    reduce = getattr(torch, name)

    def out(z: torch.Tensor, *sizes: int) -> torch.Tensor:
        return torch.empty(sizes, dtype=to, device=z.device)

    sizes = (4, 5) if name.startswith("cum") else (4,)
    # The mean of integers requires a dtype.
    dtype = {"dtype": to} if name == "mean" else {}
    for function in (
        lambda z: reduce(z, 1, dtype=to),
        lambda z: reduce(z, 1, out=out(z, *sizes), **dtype),
        lambda z: reduce(z.mT, 0, dtype=to, out=out(z, 0)) if name == "sum" else reduce(z.mT, 0, dtype=to),
        lambda z: reduce(z[:0], 0, dtype=to),
    ):
        assert_matches_cpu(function, z, rtol=1e-5, atol=1e-5, widen=False)
    if source.is_complex:
        assert_matches_cpu(lambda z: reduce(z.conj(), 0, dtype=to), z, rtol=1e-5, atol=1e-5, widen=False)


@pytest.mark.allow_fallback
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_reductions_that_are_refused() -> None:
    z, x = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    for function in (
        lambda z, x: z.mean(dtype=torch.int64),
        lambda z, x: torch.mean(x.int(), 0, out=torch.empty(4, dtype=torch.complex64, device=x.device)),
        lambda z, x: z.cumsum(0, dtype=torch.bool),
        lambda z, x: z.cumprod(0, dtype=torch.bool),
        lambda z, x: torch.sum(z, 0, dtype=torch.float64, out=torch.empty(4, dtype=torch.complex64, device=z.device)),
        lambda z, x: torch.cumsum(z, 0, dtype=torch.complex128, out=torch.empty_like(z)),
        lambda z, x: z.clone().cumsum_(0, dtype=torch.float32),
        lambda z, x: x.clone().cumprod_(0, dtype=torch.complex64),
        lambda z, x: torch.linalg.vector_norm(x, dtype=torch.complex64),
        lambda z, x: torch.linalg.vector_norm(z, dtype=torch.float32),
        lambda z, x: torch.linalg.vector_norm(z.to(torch.complex128), dtype=torch.complex64),
        lambda z, x: torch.ops.aten.norm.ScalarOpt_dim_dtype(z, 2, [0], False, dtype=torch.complex64),
        lambda z, x: torch.ops.aten.norm.ScalarOpt_dim_dtype(z, 2, [0], False, dtype=torch.complex128),
        lambda z, x: torch.nansum(x, 0, dtype=torch.complex64),
        lambda z, x: torch.linalg.vector_norm(z, 1j),
        lambda z, x: torch.norm(z, 1j),
    ):
        assert_same_outcome(function, z, x)


@layouts("zero_dim", "empty")
@dtypes(*COMPLEX)
def test_log_cumulative_sums(layout: str, dtype: torch.dtype) -> None:
    z = lay_out(4 * torch.randn(5, 7, dtype=dtype), layout)
    tight = dtype == torch.complex128
    for function in (
        lambda z: (z.logcumsumexp(0), z.logcumsumexp(-1)),
        lambda z: torch.logcumsumexp(z, 0, out=torch.empty(0, dtype=z.dtype, device=z.device)),
        lambda z: z.conj().logcumsumexp(0),
    ):
        assert_matches_cpu(function, z, rtol=1e-11 if tight else 1e-4, atol=1e-11 if tight else 1e-4, widen=False)


def test_log_cumulative_sums_of_special_values() -> None:
    infinity, nan = float("inf"), float("nan")
    for row in (
        (-infinity, 1 + 2j, -infinity),
        (complex(-infinity, 1), complex(-infinity, 2), 3 + 4j),
        (infinity, 1j, infinity),
        (1 + 1j, complex(nan, 1), 2),
        (1 + 1j, complex(1, nan), 2),
        (800 + 1j, -800 + 3j, 801),
    ):
        z = torch.tensor(row, dtype=torch.complex128)
        assert_matches_cpu(lambda z: z.logcumsumexp(0), z, rtol=1e-12, atol=1e-12, widen=False)


def test_long_log_cumulative_sums() -> None:
    z = torch.randn(2, 9001, dtype=torch.complex128)
    assert_matches_cpu(lambda z: z.logcumsumexp(1), z, rtol=1e-9, atol=1e-9, widen=False)


@dtypes(*COMPLEX)
def test_products_into_conjugates(dtype: torch.dtype) -> None:
    a, b, c = (torch.randn(4, 4, dtype=dtype) for _ in range(3))
    for function in (
        lambda a, b, c: c.clone().conj().addmm_(a, b),
        lambda a, b, c: torch.mm(a, b.conj(), out=torch.empty_like(c).conj()),
        lambda a, b, c: torch.mm(a, b, out=torch.empty_like(c).mT.conj()),
    ):
        assert_matches_cpu(function, a, b, c, rtol=1e-5, atol=1e-5, widen=False)


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


def test_wrong_lists() -> None:
    z, bad = torch.randn(3, 4, dtype=torch.complex64), torch.ones(1, dtype=torch.complex64)
    for function in (
        lambda z, bad: torch._foreach_mul([], z[0, 0]),
        lambda z, bad: torch._foreach_add([z], bad),
        lambda z, bad: torch._foreach_mul([z, z], bad),
        lambda z, bad: torch._foreach_sub([z], [1j, 2]),
        lambda z, bad: torch._foreach_add([z, z], [z]),
        lambda z, bad: torch._foreach_copy_([z, z], [z]),
    ):
        assert_same_outcome(function, z, bad)


def test_wrong_limits_of_norms() -> None:
    z = torch.randn(3, 4, dtype=torch.complex64)
    for p, limit in ((2, 1j), (2j, 1), (-1, 1j)):
        assert_same_outcome(lambda z, p=p, limit=limit: torch.renorm(z, p, 0, limit), z)
        assert_same_outcome(lambda z, p=p, limit=limit: torch.renorm(z, p, 0, limit, out=torch.empty_like(z)), z)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
@pytest.mark.parametrize("foreach", [False, True])
def test_training(optimizer: type[torch.optim.Optimizer], foreach: bool) -> None:
    """Training of a complex linear map agrees with the CPU's."""

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
