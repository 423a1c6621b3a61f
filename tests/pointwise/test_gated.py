"""Gated units, random slopes, fused dropout and channel shuffles, compared with the CPU."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_outcome
from tests.support.dtypes import ALL, FLOATS, dtypes

aten = torch.ops.aten


@dtypes(FLOATS)
def test_glu(dtype):
    x = torch.randn(4, 6, 2, 8).to(dtype).requires_grad_()
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda x, dim=dim: F.glu(x, dim), x)
    channels_last = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    assert_matches_cpu(lambda x: F.glu(x, 1), channels_last)
    assert_matches_cpu(lambda x: F.glu(x.transpose(0, 3)[::2], 1), x)
    assert_matches_cpu(F.glu, x[:0].detach().requires_grad_())


def test_glu_into_a_tensor_that_has_to_grow():
    x = torch.arange(120.0).div(60).reshape(2, 3, 5, 4).permute(0, 3, 1, 2)
    for view, dim in ((x, 1), (x[:, :, :2], 2), (x.transpose(0, 1), 0)):
        expected, ours = torch.empty(0), torch.empty(0, device="dml")
        aten.glu.out(view, dim, out=expected)
        aten.glu.out(view.to("dml"), dim, out=ours)
        assert_same(ours, expected)
        assert ours.stride() == expected.stride()


def test_glu_derivatives():
    x, dx = torch.randn(3, 4, 2).double(), torch.randn(3, 4, 2).double()
    dy = torch.randn(3, 2, 2).double()

    def both(x, dx, dy):
        y = aten.glu(x, 1)
        gradient = aten.glu_backward(dy, x, 1)
        return aten.glu_jvp(y, x, dx, 1), aten.glu_backward_jvp(gradient, dy, x, 2 * dy, dx, 1)

    assert_matches_cpu(both, x, dx, dy)
    assert torch.autograd.gradgradcheck(lambda x: F.glu(x, 1), x.to("dml").requires_grad_())
    assert torch.autograd.gradcheck(lambda x: F.glu(x, 1), x.to("dml").requires_grad_(), check_forward_ad=True)


def test_glu_out_and_errors():
    def run(x, g):
        outs = [torch.empty(0, device=x.device) for _ in range(2)]
        aten.glu.out(x, 1, out=outs[0])
        aten.glu_backward.grad_input(g, x, 1, grad_input=outs[1])
        return outs

    assert_matches_cpu(run, torch.randn(3, 4), torch.randn(3, 2))
    x = torch.randn(3, 4, device="dml")
    with pytest.raises(RuntimeError, match="glu does not support 0-dimensional tensors"):
        aten.glu(x[0, 0], 0)
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 0 is size 3"):
        F.glu(x, 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        F.glu(x, 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.glu(x.long())
    # `out=` of another dtype is cast to, as on the CPU.
    wide = torch.empty(0, dtype=torch.float64, device="dml")
    assert aten.glu.out(x, 1, out=wide) is wide
    assert_same(wide.float(), F.glu(x.cpu()))


@dtypes(FLOATS)
def test_rrelu(dtype):
    x = torch.randn(100, 30).to(dtype).to("dml").requires_grad_()
    noise = torch.zeros_like(x)
    y = aten.rrelu_with_noise(x, noise, 0.2, 0.4, True)
    slopes = torch.where(x > 0, torch.ones_like(noise), noise)
    assert_same(noise.detach(), slopes.detach().cpu())
    assert_same(y.detach(), (x * noise).detach().cpu())
    below = noise[x <= 0].float()
    assert 0.199 < below.min() < 0.21 and 0.39 < below.max() < 0.401 and abs(below.mean() - 0.3) < 0.01
    y.sum().backward()
    assert_same(x.grad, noise.detach().cpu())
    z = x.detach().clone()
    assert F.rrelu_(z, 0.1, 0.3, training=True) is z
    if dtype in (torch.float32, torch.float64):  # the CPU has no half precision here
        assert_matches_cpu(lambda x: F.rrelu(x, 0.1, 0.4), torch.randn(5, 6).to(dtype).requires_grad_())
        out = lambda x: aten.rrelu_with_noise.out(x, x.clone(), 0.1, 0.4, False, out=torch.empty_like(x))  # noqa: E731
        assert_matches_cpu(out, torch.randn(5, 6).to(dtype))


def test_rrelu_follows_the_seed_and_refuses():
    x = -torch.rand(50, device="dml")
    draw = lambda: F.rrelu(x, training=True)  # noqa: E731
    torch.manual_seed(5)
    first = draw()
    assert not torch.equal(first, draw())
    torch.manual_seed(5)
    assert torch.equal(first, draw())
    with pytest.raises(RuntimeError, match="noise tensor shape must match self tensor shape"):
        aten.rrelu_with_noise(x, x[:3], 0.1, 0.3, True)
    with pytest.raises(RuntimeError, match="Expected from <= to"):
        aten.rrelu_with_noise(x, x.clone(), 0.4, 0.3, True)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        aten.rrelu_with_noise(x.long(), x, 0.1, 0.3, True)


@pytest.mark.parametrize("mask", [torch.bool, torch.uint8, torch.float16])
@dtypes(ALL)
def test_gradient_of_dropout(dtype, mask):
    """Two products: integers become floats in the second, and a numeric mask is a factor."""
    x, kept = torch.tensor([-3, 0, 1, 100, 1000]).to(dtype), torch.tensor([1, 1, 0, 2, 3]).to(mask)
    assert_same_outcome(lambda x, kept: aten.native_dropout_backward(x, kept, 1.25), x, kept)


@dtypes(FLOATS)
def test_fused_dropout(dtype):
    x = torch.randn(40, 50).to(dtype).to("dml")
    y, mask = aten._fused_dropout(x, 0.75)
    assert mask.dtype == torch.uint8 and abs(mask.float().mean().item() - 0.75) < 0.04
    exact = x.cpu().double() * mask.cpu() / 0.75
    assert_same(y, exact.to(dtype), exact=exact)
    assert_same(aten._masked_scale(x, mask, 1 / 0.75), exact.to(dtype), exact=exact)
    with pytest.raises(RuntimeError, match=r"mask should be torch\.uint8"):
        aten._masked_scale(x, mask.bool(), 2.0)


@dtypes(torch.float32, torch.float16, torch.int64, torch.bool)
def test_channel_shuffle(dtype):
    x = torch.arange(4 * 6 * 2 * 3).reshape(4, 6, 2, 3).to(dtype)
    for groups in (1, 2, 3, 6):
        shuffle = lambda x, groups=groups: torch.channel_shuffle(x, groups)  # noqa: E731
        for y in (x, x[..., 0], x.transpose(2, 3), x.contiguous(memory_format=torch.channels_last), x[:0]):
            assert shuffle(y.to("dml")).stride() == shuffle(y).stride()
            assert_matches_cpu(shuffle, y)


def test_channel_shuffle_gradient_and_errors():
    assert_matches_cpu(lambda x: torch.channel_shuffle(x, 3), torch.randn(2, 6, 4, 2).requires_grad_())
    x = torch.randn(2, 6, 3, device="dml")
    with pytest.raises(RuntimeError, match="expects input with > 2 dims"):
        torch.channel_shuffle(x[0], 3)
    with pytest.raises(
        RuntimeError, match=r"Number of channels must be divisible by groups\. Got 6 channels and 4 groups"
    ):
        torch.channel_shuffle(x, 4)
    with pytest.raises(RuntimeError, match="Number of groups to divide channels in must be positive"):
        torch.channel_shuffle(x, 0)
