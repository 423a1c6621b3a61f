"""Losses against the CPU, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from conftest import assert_matches_cpu

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
REDUCTIONS = ["none", "mean", "sum"]
# Gradients of half-precision losses are rounded more often on the CPU.
LOOSE = {torch.float16: {"rtol": 5e-3, "atol": 5e-3}, torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2}}


def logs(*sizes, dtype=torch.float32):
    return torch.log_softmax(torch.randn(*sizes), 1 if len(sizes) > 1 else 0).to(dtype).requires_grad_()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nll(reduction, dtype):
    x, target = logs(20, 7, dtype=dtype), torch.randint(0, 7, (20,))
    weight = torch.rand(7).to(dtype) + 0.5
    loose = LOOSE.get(dtype, {})
    assert_matches_cpu(lambda x, t: F.nll_loss(x, t, reduction=reduction), x, target, **loose)
    assert_matches_cpu(lambda x, t, w: F.nll_loss(x, t, w, reduction=reduction), x, target, weight, **loose)
    assert_matches_cpu(
        lambda x, t, w: F.nll_loss(x, t, w, ignore_index=3, reduction=reduction), x, target, weight, **loose
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_shapes(reduction):
    loss = lambda x, t: F.nll_loss(x, t, reduction=reduction)  # noqa: E731
    assert_matches_cpu(loss, logs(6), torch.tensor(4))
    assert_matches_cpu(loss, logs(3000, 11), torch.randint(0, 11, (3000,)))
    assert_matches_cpu(loss, logs(20, 7).detach().t().contiguous().t().requires_grad_(), torch.randint(0, 7, (20,)))
    assert_matches_cpu(loss, logs(5, 7), torch.randint(0, 7, (10,))[::2])
    assert_matches_cpu(loss, logs(5, 7), torch.randint(0, 7, (5,), dtype=torch.uint8))
    assert_matches_cpu(loss, torch.zeros(0, 7), torch.zeros(0, dtype=torch.int64))
    assert_matches_cpu(loss, logs(4, 7), torch.full((4,), -100))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_images(reduction):
    x, target, weight = logs(3, 5, 4, 6), torch.randint(0, 5, (3, 4, 6)), torch.rand(5)
    assert_matches_cpu(lambda x, t: F.nll_loss(x, t, reduction=reduction), x, target)
    assert_matches_cpu(lambda x, t, w: F.nll_loss(x, t, w, ignore_index=2, reduction=reduction), x, target, weight)
    last = x.detach().to(memory_format=torch.channels_last)
    assert_matches_cpu(lambda x, t: F.nll_loss(x, t.transpose(1, 2).contiguous().transpose(1, 2)), last, target)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 1}, {"reduction": "sum"}])
def test_cross_entropy(options):
    x, target = torch.randn(16, 5, requires_grad=True), torch.randint(0, 5, (16,))
    assert_matches_cpu(lambda x, t: F.cross_entropy(x, t, **options), x, target)


@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3, 3)])
def test_a_target_out_of_range_raises(shape):
    x = torch.zeros(shape, device="dml")
    target = torch.zeros(shape[:1] + shape[2:], dtype=torch.int64)
    for reduction in REDUCTIONS:
        for bad in (5, -1):
            target.view(-1)[2] = bad
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension 1 with size 5"):
                F.nll_loss(x, target.to("dml"), reduction=reduction).cpu()
    assert F.nll_loss(x, target.clamp(0, 4).to("dml")).item() == 0


def test_nll_errors():
    x, target = torch.zeros(3, 5, device="dml"), torch.zeros(3, dtype=torch.int64, device="dml")
    nll = torch.ops.aten.nll_loss_forward
    with pytest.raises(RuntimeError, match="size mismatch"):
        nll(x, target[:2], None, 1, -100)
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
        nll(x, target.float(), None, 1, -100)
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 5 classes"):
        nll(x, target, torch.ones(4, device="dml"), 1, -100)
    with pytest.raises(RuntimeError, match="input tensor should be 1D or 2D"):
        nll(x[None], target, None, 1, -100)


LOSSES = [
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.3, **k),
    lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.0, **k),
    F.huber_loss,
    lambda x, y, **k: F.huber_loss(x, y, delta=0.4, **k),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_losses_of_differences(loss, reduction, dtype):
    x, y = torch.randn(6, 7).to(dtype).requires_grad_(), torch.randn(6, 7).to(dtype)
    assert_matches_cpu(lambda x, y: loss(x, y, reduction=reduction), x, y, **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_mse_shapes(reduction):
    mse = lambda x, y: F.mse_loss(x, y, reduction=reduction)  # noqa: E731
    assert_matches_cpu(mse, torch.randn(500, 300, requires_grad=True), torch.randn(500, 300, requires_grad=True))
    assert_matches_cpu(mse, torch.randn(4, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True).t())
    assert_matches_cpu(mse, torch.tensor(2.0, requires_grad=True), torch.tensor(3.0))
    assert_matches_cpu(mse, torch.zeros(0, 3), torch.zeros(0, 3))
    assert_matches_cpu(torch.ops.aten.mse_loss, torch.randn(4, 3), torch.randn(3))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_cross_entropy(reduction, dtype):
    x = (torch.rand(5, 6) * 0.9 + 0.05).to(dtype).requires_grad_()
    y, weight = torch.rand(5, 6).to(dtype), torch.rand(6).to(dtype)
    bce, loose = F.binary_cross_entropy, LOOSE.get(dtype, {})
    assert_matches_cpu(lambda x, y: bce(x, y, reduction=reduction), x, y, **loose)
    assert_matches_cpu(lambda x, y, w: bce(x, y, w, reduction=reduction), x, y, weight, **loose)


def test_binary_cross_entropy_is_finite():
    x = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5], requires_grad=True)
    assert_matches_cpu(F.binary_cross_entropy, x, torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_sigmoid(dtype):
    x = (torch.randn(40) * 30).to(dtype).requires_grad_()
    assert_matches_cpu(F.logsigmoid, x)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_composites(reduction):
    x, y = torch.randn(4, 6, requires_grad=True), torch.rand(4, 6)
    logits = F.binary_cross_entropy_with_logits
    assert_matches_cpu(lambda x, y: logits(x, y, reduction=reduction), x, y)
    assert_matches_cpu(lambda x, y: logits(x, y, pos_weight=y[0] + 1, reduction=reduction), x, y)
    assert_matches_cpu(lambda x, y: F.kl_div(x.log_softmax(1), y, reduction=reduction, log_target=True), x, y)
    assert_matches_cpu(lambda x, y: F.soft_margin_loss(x, y.sign(), reduction=reduction), x, y - 0.5)


def test_out_and_errors():
    def run(x, y):
        out = torch.empty(0, device=x.device)
        assert torch.ops.aten.mse_loss.out(x, y, 0, out=out) is out
        total = torch.empty((), device=x.device)
        torch.ops.aten.mse_loss.out(x, y, 1, out=total)
        return out, total

    assert_matches_cpu(run, torch.randn(3, 4), torch.randn(3, 4))
    x = torch.ones(3, 2, device="dml")
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        F.mse_loss(x, torch.ones(4, 2, device="dml"))
    with pytest.raises(RuntimeError, match="does not support negative values for beta"):
        F.smooth_l1_loss(x, x, beta=-1.0)
    with pytest.raises(RuntimeError, match="does not support non-positive values for delta"):
        F.huber_loss(x, x, delta=0.0)
    with pytest.raises(NotImplementedError):
        F.mse_loss(x.long(), x.long())
    assert math.isnan(F.mse_loss(x[:0], x[:0]).item())
