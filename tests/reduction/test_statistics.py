"""Smaller reductions: trace, cross products, hashes, extremes, covariances, differences."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_matches_cpu
from tests.support.dtypes import ALL, INTEGERS, NUMBERS, dtypes, sample


@dtypes(torch.float32, torch.float64, INTEGERS)
def test_trace(dtype):
    x = sample(40, 30, dtype=dtype)
    assert_matches_cpu(lambda x: (x.trace(), x.t().trace(), x[::2, 3:9].trace(), x[:0].trace()), x)
    if dtype.is_floating_point:
        assert_matches_cpu(torch.trace, x.requires_grad_())
    with pytest.raises(RuntimeError, match="expected a matrix"):
        x[0].to("dml").trace()


@dtypes(NUMBERS)
def test_cross(dtype):
    x, y = sample(4, 3, 5, dtype=dtype), sample(4, 3, 5, dtype=dtype)
    assert_matches_cpu(lambda x, y: torch.linalg.cross(x, y, dim=1), x, y)
    assert_matches_cpu(lambda x, y: torch.cross(x, y, dim=1), x, y)
    assert_matches_cpu(lambda x, y: torch.linalg.cross(x[:1], y, dim=1), x, y)
    assert_matches_cpu(lambda x, y: torch.linalg.cross(x.transpose(1, 2), y.transpose(1, 2)), x, y)
    if dtype == torch.float32:
        assert_matches_cpu(lambda x, y: torch.linalg.cross(x, y, dim=1), x.requires_grad_(), y.requires_grad_())
        z = x.detach().to("dml")
        want = torch.linalg.cross(x.detach(), y.detach(), dim=1)
        torch.linalg.cross(z, y.detach().to("dml"), dim=1, out=z)
        torch.testing.assert_close(z.cpu(), want)
    with pytest.raises(RuntimeError, match="length 3"):
        torch.linalg.cross(x.to("dml"), y.to("dml"), dim=0)


@pytest.mark.skipif(not hasattr(torch, "hash_tensor"), reason="this torch has no hash_tensor")
@dtypes(ALL)
def test_hash(dtype):
    x = sample(7, 300, dtype=dtype)
    assert_matches_cpu(
        lambda x: (torch.hash_tensor(x), torch.hash_tensor(x, 1), torch.hash_tensor(x, 0, keepdim=True)), x
    )
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        special = [0.0, -0.0, float("inf"), -float("inf"), info.max, info.tiny, -info.smallest_normal]
        for value in [*special, info.tiny / 2, info.smallest_subnormal if hasattr(info, "smallest_subnormal") else 1.0]:
            assert_matches_cpu(torch.hash_tensor, torch.tensor([value], dtype=dtype))


@dtypes(ALL)
def test_aminmax(dtype):
    x = sample(5, 40, dtype=dtype) if dtype != torch.bool else torch.rand(5, 40) > 0.5
    assert_matches_cpu(lambda x: (*torch._aminmax(x), *torch._aminmax(x, 1), *torch._aminmax(x, 0, True)), x)


def test_covariance_and_differences():
    x, w = torch.randn(4, 50), torch.randint(1, 5, (50,))
    assert_matches_cpu(lambda x, w: (x.cov(), x.cov(fweights=w), x.corrcoef(), x[0].cov()), x, w)
    assert_matches_cpu(lambda x: (x.diff(), x.diff(n=2, dim=0), x.diff(prepend=x[:, :1])), x)
    assert_matches_cpu(lambda x: (torch.trapezoid(x), torch.cumulative_trapezoid(x), torch.trapezoid(x, x)), x)
    assert_matches_cpu(
        lambda x: (torch.vander(x[0, :6]), torch.block_diag(x, x[:2, :3]), torch.combinations(x[0, :7])), x
    )
    assert_matches_cpu(lambda x: torch.cartesian_prod(x[0, :3], x[1, :4]), x)
    assert_matches_cpu(lambda x: x.tensor_split([3, 9], 1), x)


def test_gradients_of_logcumsumexp():
    """PyTorch's formula takes the logarithm of the gradient, and loses digits, but no more than on
    the CPU.
    """
    assert_matches_cpu(lambda x: x.logcumsumexp(1), torch.randn(6, 40, dtype=torch.float64, requires_grad=True))
    x = torch.randn(6, 40) * 50

    def error(device):
        leaf = x.to(device).requires_grad_()
        (leaf.logcumsumexp(1) * torch.linspace(-3, 5, 240).reshape(6, 40).to(device)).sum().backward()
        return (leaf.grad.cpu() - exact.grad).abs().max()

    exact = x.double().requires_grad_()
    (exact.logcumsumexp(1) * torch.linspace(-3, 5, 240).reshape(6, 40)).sum().backward()
    assert error("dml") <= 2 * error("cpu") + 1e-6
