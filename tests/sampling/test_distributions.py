"""Gradients through random samples: the reparameterised distributions of torch.distributions, and
the operators that they use.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import pytest
import torch
from torch import distributions

from tests.support.compare import assert_same, assert_same_error, to_device
from tests.support.dtypes import FLOATS, dtypes
from tests.support.layouts import lay_out, layouts

aten = torch.ops.aten
INF, NAN = float("inf"), float("nan")


def log_uniform(low: float, high: float, count: int) -> torch.Tensor:
    return torch.rand(count, dtype=torch.float64).mul(math.log(high / low)).exp() * low


def gamma_gradient(a: float, x: float) -> float:
    """By its definition, to 30 digits."""
    with mpmath.workdps(45):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        upper = x > a  # The smaller one of the two functions.
        change = mpmath.diff(lambda a: mpmath.gammainc(a, x if upper else 0, mpmath.inf if upper else x), a)
        whole = mpmath.gammainc(a, x if upper else 0, mpmath.inf if upper else x)
        change = change - whole * mpmath.digamma(a)
        return float((change if upper else -change) / (x ** (a - 1) * mpmath.exp(-x)))


def beta_gradient(x: float, a: float, total: float) -> float:
    """By its definition, to 30 digits."""
    with mpmath.workdps(60):
        x, a, b = mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(total) - mpmath.mpf(a)
        change = mpmath.diff(lambda a: mpmath.betainc(a, b, 0, x, regularized=True), a)
        return float(-change * mpmath.beta(a, b) / (x ** (a - 1) * (1 - x) ** b))


def gamma_points() -> tuple[torch.Tensor, torch.Tensor]:
    """Shapes and samples, in the middle of the distributions and far from it."""
    torch.manual_seed(1)
    a = log_uniform(1e-2, 300, 48).float().double()
    x = torch.distributions.Gamma(a, torch.ones_like(a)).sample()
    x[::3] = log_uniform(1e-3, 300, 16)
    x[1::6] = a[1::6]
    return a, x.clamp(1e-12, 500).float().double()


def beta_points() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(2)
    a, b = (log_uniform(1e-2, 100, 60).float().double() for _ in range(2))
    x = torch.distributions.Beta(a, b).sample()
    x[::3] = torch.rand(20, dtype=torch.float64)
    x = x.clamp(1e-6, 1 - 1e-4).float().double()
    # Rounded to float32, so that both dtypes compute the same.
    return x, a, (a + b).float().double()


POINTS = {
    "gamma": (aten._standard_gamma_grad, gamma_gradient, gamma_points),
    "beta": (aten._dirichlet_grad, beta_gradient, beta_points),
}


def room(*arguments: torch.Tensor) -> torch.Tensor:
    """The effect of a rounding of `total`, from which a parameter is computed by subtracting
    `a`.
    """
    if len(arguments) == 2:
        return torch.ones(())
    _, a, total = arguments
    return (total / (total - a)).clamp_min(1)


def assert_near(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> None:
    """The device agrees with the CPU, whose functions are accurate to three digits, and has its
    strides.
    """
    got, want = (function(*to_device(args, device)) for device in ("dml", "cpu"))
    assert_same(got, want, 5e-3, 0)
    assert got.stride() == want.stride()


@pytest.mark.parametrize("name", POINTS)
def test_definition(name: str) -> None:
    function, definition, points = POINTS[name]
    arguments = points()
    rows = zip(*(t.tolist() for t in arguments), strict=True)
    exact = torch.tensor([definition(*row) for row in rows], dtype=torch.float64)
    for dtype, bound in ((torch.float64, 2e-14), (torch.float32, 2e-6)):
        got = function(*(t.to(dtype).to("dml") for t in arguments)).cpu().double()
        assert ((got / exact - 1).abs() < bound * room(*arguments)).all()


@pytest.mark.parametrize("name", POINTS)
def test_nearer_than_the_cpu(name: str) -> None:
    """Compared with float64, whose own error the definition shows; the CPU approximates both to
    about three digits.
    """
    torch.manual_seed(3)
    count = 4000
    a = log_uniform(1e-3, 1e4, count).float()
    if name == "gamma":
        arguments = [a, torch.distributions.Gamma(a, torch.ones(count)).sample()]
        arguments[1][::2] = log_uniform(1e-6, 1e4, count // 2).float()
    else:
        b = log_uniform(1e-2, 1e4, count).float()
        total = a + b
        arguments = [torch.distributions.Beta(a, total - a).sample().clamp(1e-30, 1 - 6e-8), a, total]
        arguments[0][::2] = torch.rand(count // 2).clamp_min(1e-6)
    function = POINTS[name][0]
    exact = function(*(t.double().to("dml") for t in arguments)).cpu()
    got = function(*(t.to("dml") for t in arguments)).cpu().double()
    cpu = function(*arguments).double()
    assert exact.isfinite().all() and (exact > 0).all()
    error, its = ((one - exact).abs() / exact for one in (got, cpu))
    assert (error <= torch.maximum(3e-6 * room(*arguments).double(), its)).all()
    assert error.median() < 3e-7


def test_large_shapes() -> None:
    """A sample is about `shape + z sqrt(shape)`, so its derivative is close to
    `1 + z / (2 sqrt(shape))`.
    """
    for dtype in (torch.float32, torch.float64):
        shape = torch.tensor([1e5, 1e6, 1e8, 1e12], dtype=dtype)
        z = torch.tensor([[-2.0], [0.0], [1.0], [3.0]], dtype=dtype)
        x = shape + z * shape.sqrt()
        got = aten._standard_gamma_grad(shape.to("dml"), x.to("dml")).cpu().double()
        z = (x.double() - shape.double()) / shape.double().sqrt()
        assert ((got - (1 + z / (2 * shape.double().sqrt()))).abs() < 8 / shape.double() + 4e-7).all()


def test_edges() -> None:
    a = torch.tensor([1.0, 0.0, 2.0, -1.0, 1.0, INF, 1.0, NAN, 1.0, INF, 0.5])
    x = torch.tensor([0.0, 1.0, -1.0, 1.0, -0.0, 1.0, INF, 1.0, NAN, INF, 1e3])
    # The last one is far in the tail, where the CPU's error is a tenth.
    assert_same(aten._standard_gamma_grad(a.to("dml"), x.to("dml"))[:-1], aten._standard_gamma_grad(a, x)[:-1], 1e-3, 0)
    assert abs(aten._standard_gamma_grad(a.to("dml"), x.to("dml"))[-1].item() - gamma_gradient(0.5, 1e3)) < 1e-5
    x = torch.tensor([0.0, 1.0, 1.0, NAN, 0.5, 0.5, 0.5, 1e-38, -0.5, 0.5])
    a = torch.tensor([1.0, 1.0, 0.5, 1.0, 1.0, INF, 1.0, 1.0, 1.0, 1.0])
    total = torch.tensor([2.0, 2.0, 0.7, 2.0, NAN, INF, INF, 2.0, 2.0, 1.0])
    assert_same(
        aten._dirichlet_grad(x.to("dml"), a.to("dml"), total.to("dml")), aten._dirichlet_grad(x, a, total), 1e-3, 0
    )


@layouts()
@dtypes(FLOATS)
def test_layouts(dtype: torch.dtype, layout: str) -> None:
    torch.manual_seed(4)
    x, total = (lay_out(torch.rand(2, 3, dtype=torch.float64).add(start).to(dtype), layout) for start in (0.01, 3.0))
    on_device = [t.to("dml") for t in (x, total)]
    got = aten._standard_gamma_grad(on_device[1], on_device[0])
    want = aten._standard_gamma_grad(total.double(), x.double())
    assert got.dtype == dtype
    assert_same(got.double(), want, 1e-3 + 2 * torch.finfo(dtype).eps, 0)
    if dtype in (torch.float32, torch.float64):
        assert_near(lambda x, y: aten._standard_gamma_grad(y, x), x, total)
        assert_near(lambda x, y: aten._dirichlet_grad(x * 0.9, y, y * 2), x, total)


def test_arguments() -> None:
    x, rows = torch.rand(3) + 0.1, torch.rand(2, 1) + 0.1
    for out in (torch.empty(0), torch.empty(2, 3), torch.empty(3, 2).t()):
        assert_near(lambda x, y, out: aten._standard_gamma_grad.out(x, y, out=out), x, rows, out)
        assert_near(lambda x, y, out: aten._dirichlet_grad.out(x / 2, y, y + 1, out=out), x, rows, out)
    for wrong in (torch.rand(3).double(), torch.rand(4), torch.rand(3).int()):
        assert_same_error(aten._standard_gamma_grad, x, wrong)
        assert_same_error(aten._dirichlet_grad, x, wrong, x)
    assert_same_error(aten._standard_gamma_grad, x.int(), x.int())
    assert_same_error(aten._dirichlet_grad, x.half(), x.half(), x.half())
    out = torch.empty(3, dtype=torch.float64)
    assert_same_error(lambda x, out: aten._standard_gamma_grad.out(x, x, out=out), x, out)
    assert_same_error(lambda x, out: aten._dirichlet_grad.out(x, x, x, out=out), x, out)


def two(low: float, high: float) -> list[torch.Tensor]:
    return [torch.linspace(low, high, 12).reshape(3, 4), torch.linspace(high, low, 12).reshape(3, 4)]


DISTRIBUTIONS: dict[str, tuple[Callable[..., distributions.Distribution], list[torch.Tensor]]] = {
    "gamma": (distributions.Gamma, two(0.2, 9.0)),
    "beta": (distributions.Beta, two(0.2, 9.0)),
    "dirichlet": (distributions.Dirichlet, two(0.2, 9.0)[:1]),
    "chi2": (distributions.Chi2, two(0.5, 9.0)[:1]),
    "student": (distributions.StudentT, two(6.0, 9.0)),
    "fisher": (distributions.FisherSnedecor, two(8.0, 14.0)),
    "kumaraswamy": (distributions.Kumaraswamy, two(0.5, 4.0)),
    "inverse gamma": (distributions.InverseGamma, two(6.0, 9.0)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_gradients_of_the_mean(name: str) -> None:
    """Gradients of samples' means are close to those of the distribution's mean."""
    make, parameters = DISTRIBUTIONS[name]
    if not hasattr(distributions, "InverseGamma") and name == "inverse gamma":
        pytest.skip("this torch has none")
    torch.manual_seed(5)
    leaves = [p.to("dml").requires_grad_() for p in parameters]
    drawn = make(*leaves)
    samples = drawn.rsample((20_000,))
    assert samples.isfinite().all()
    weights = torch.linspace(-1, 1, samples[0].numel(), device="dml").reshape(samples.shape[1:])
    got = torch.autograd.grad((samples.mean(0) * weights).sum(), leaves, retain_graph=True, allow_unused=True)
    want = torch.autograd.grad((drawn.mean * weights).sum(), leaves, allow_unused=True)
    for one, other in zip(got, want, strict=True):
        if other is not None and one is not None:
            scale = other.abs().max().item() + 1e-3
            assert ((one - other).abs().max().item()) < 0.15 * scale
