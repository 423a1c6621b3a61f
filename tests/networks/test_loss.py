"""Losses, compared with the CPU, forward and backward."""

from __future__ import annotations

import itertools
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import FLOATS, dtypes
from tests.support.environment import TORCH

REDUCTIONS = ["none", "mean", "sum"]
# Before torch 2.12 the CPU's gradient of mse_loss did not support mixed dtypes; the device supports
# them.
MSE_REFUSES = TORCH < (2, 12)


def logs(*sizes, dtype=torch.float32):
    return torch.log_softmax(torch.randn(*sizes), 1 if len(sizes) > 1 else 0).to(dtype).requires_grad_()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(FLOATS)
def test_nll(reduction, dtype):
    x, target = logs(20, 7, dtype=dtype), torch.randint(0, 7, (20,))
    weight = torch.rand(7).to(dtype) + 0.5
    assert_matches_cpu(lambda x, t: F.nll_loss(x, t, reduction=reduction), x, target)
    assert_matches_cpu(lambda x, t, w: F.nll_loss(x, t, w, reduction=reduction), x, target, weight)
    assert_matches_cpu(lambda x, t, w: F.nll_loss(x, t, w, ignore_index=3, reduction=reduction), x, target, weight)


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
    wide = torch.empty(0, dtype=torch.float64, device="dml")
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        nll.output(x, target, None, 0, -100, output=wide, total_weight=wide.float())


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
@dtypes(FLOATS)
def test_losses_of_differences(loss, reduction, dtype):
    x, y = torch.randn(6, 7).to(dtype).requires_grad_(), torch.randn(6, 7).to(dtype)
    assert_matches_cpu(lambda x, y: loss(x, y, reduction=reduction), x, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_mse_shapes(reduction):
    mse = lambda x, y: F.mse_loss(x, y, reduction=reduction)  # noqa: E731
    assert_matches_cpu(mse, torch.randn(500, 300, requires_grad=True), torch.randn(500, 300, requires_grad=True))
    assert_matches_cpu(mse, torch.randn(4, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True).t())
    assert_matches_cpu(mse, torch.tensor(2.0, requires_grad=True), torch.tensor(3.0))
    assert_matches_cpu(mse, torch.zeros(0, 3), torch.zeros(0, 3))
    assert_matches_cpu(torch.ops.aten.mse_loss, torch.randn(4, 3), torch.randn(3))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(FLOATS)
def test_binary_cross_entropy(reduction, dtype):
    x = (torch.rand(5, 6) * 0.9 + 0.05).to(dtype).requires_grad_()
    y, weight = torch.rand(5, 6).to(dtype), torch.rand(6).to(dtype)
    bce = F.binary_cross_entropy
    assert_matches_cpu(lambda x, y: bce(x, y, reduction=reduction), x, y)
    assert_matches_cpu(lambda x, y, w: bce(x, y, w, reduction=reduction), x, y, weight)


def test_binary_cross_entropy_is_finite():
    x = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5], requires_grad=True)
    assert_matches_cpu(F.binary_cross_entropy, x, torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(FLOATS)
def test_binary_cross_entropy_of_what_is_no_probability(reduction, dtype):
    bce = partial(F.binary_cross_entropy, reduction=reduction)
    good = torch.tensor([0.0, -0.0, 0.5, 1.0] * 80, dtype=dtype)
    assert_matches_cpu(bce, good, good.flip(0))
    for value in (-0.5, -torch.finfo(dtype).smallest_normal, 1.0 + torch.finfo(dtype).eps, math.nan, math.inf):
        bad = good.clone()
        bad[-3] = value
        assert_same_error(bce, bad, good)
        assert_same_error(bce, good, bad)


@pytest.mark.parametrize("reduction", [0, 1])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"])
def test_dtypes_of_losses_of_differences(name, reduction):
    """Which combinations of dtypes are promoted, which are refused, and the dtype of the result."""
    forward, backward = getattr(torch.ops.aten, name), getattr(torch.ops.aten, name + "_backward")
    numbers = [1.0] if name in ("smooth_l1_loss", "huber_loss") else []
    order = (lambda r: [None, r]) if name == "binary_cross_entropy" else (lambda r: [r, *numbers])
    made = {dtype: torch.tensor([0, 1, 1, 0]).to(dtype) for dtype in [*FLOATS, torch.int64, torch.bool]}
    for x, y in itertools.product(made.values(), repeat=2):
        assert_same_outcome(lambda x, y: forward(x, y, *order(reduction)), x, y)
        for grad in made.values():
            refused = MSE_REFUSES and name == "mse_loss" and not grad.dtype == x.dtype == y.dtype
            if x.is_floating_point() and not refused:  # the CPU has gradients for integers
                assert_same_outcome(lambda g, x, y: backward(g, x, y, *order(reduction)), grad, x, y)
    x, grad_out = made[torch.float32], backward.out if name == "huber_loss" else backward.grad_input
    for out in made.values():
        assert_same_outcome(lambda x, out: forward.out(x, x, *order(0), out=out), x, out)
        if not (MSE_REFUSES and name == "mse_loss"):
            assert_same_outcome(lambda x, out: grad_out(x, x, x, *order(reduction), grad_input=out), x, out)
        if name == "binary_cross_entropy":
            assert_same_outcome(lambda x, w: forward(x, x, w, reduction), x, out)
            assert_same_outcome(lambda x, w: backward(x, x, x, w, reduction), x, out)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_a_mean_s_gradient_counts_the_input(name):
    knee = [] if name == "mse_loss" else [0.5]
    backward = getattr(torch.ops.aten, name + "_backward")
    x, y = torch.randn(3, 1), torch.randn(3, 4)
    assert_same_outcome(lambda g, x, y: backward(g, x, y, 1, *knee), torch.ones(()), x, y)
    # It is contiguous, whatever the strides of the input.
    assert_same_outcome(lambda g, x, y: backward(g, x, y, 0, *knee), y.mT.contiguous().mT, y.mT.contiguous().mT, y)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_out_of_losses_of_differences(name):
    """Its dtype has to hold the promoted dtype, its strides are the input's; inputs keep their
    shape.
    """
    knee = [] if name == "mse_loss" else [0.5]
    aten = getattr(torch.ops.aten, name)
    backward = getattr(torch.ops.aten, name + "_backward")
    backward = backward.out if name == "huber_loss" else backward.grad_input
    x, y = torch.randn(2, 3, 4).mT, torch.randn(2, 4, 3)
    for out in (torch.empty(0), torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64)):
        assert_same_outcome(lambda x, y, out: aten.out(x, y, 0, *knee, out=out), x, y, out)
        if name != "mse_loss" or out.dtype == torch.float32 or not MSE_REFUSES:
            assert_same_outcome(lambda g, x, y, out: backward(g, x, y, 1, *knee, grad_input=out), y, x, y, out)
        if name != "mse_loss":
            assert_same_outcome(lambda x, y, out: aten.out(x, y, 0, *knee, out=out), x.half(), y, out)
    if name == "smooth_l1_loss":
        bytes_ = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
        assert_same_outcome(lambda g, x, y, o: backward(g, x, y, 1, *knee, grad_input=o), y, bytes_, y, torch.empty(0))
    assert_same_outcome(lambda x, y: aten.out(x, y, 1, *knee, out=x), torch.ones(()), y)
    # The gradient of a broadcast input has the strides of all inputs together.
    assert_same_outcome(
        lambda g, x, y: getattr(torch.ops.aten, name + "_backward")(g, x, y, 2, *knee), y, y[0, 0, :1], x
    )


def test_gradients_at_the_ends_of_the_range():
    big = torch.tensor([3e38, -3e38, 2e-38, 1e-30] * 70)
    mse, bce = torch.ops.aten.mse_loss_backward, torch.ops.aten.binary_cross_entropy_backward
    assert_same_outcome(lambda g, x: mse(g, x, torch.zeros_like(x), 1), torch.full((280,), 1e-4), big)
    assert_same_outcome(lambda g, x: bce(g, x, torch.ones_like(x), None, 1), torch.full((280,), 1e-38), big)
    # If the probability is 1, the divisor is 1e-12 as a float32.
    ones = torch.ones(4, dtype=torch.float64)
    assert_same_outcome(lambda g, x: bce(g, x, torch.zeros_like(x), None, 0), ones, ones)


def test_binary_cross_entropy_takes_dimensions_of_size_1_for_none():
    x, y = torch.rand(3, 1, 4), torch.rand(3, 4)
    gradient = torch.ops.aten.binary_cross_entropy_backward
    for reduction in (0, 1):
        assert_same_outcome(lambda x, y, r=reduction: torch.ops.aten.binary_cross_entropy(x, y, None, r), x, y)
        assert_same_outcome(lambda x, y, r=reduction: gradient(y, x, y, x[0], r), x, y)
    assert_same_error(lambda x, y: torch.ops.aten.binary_cross_entropy(x, y, torch.ones(2, 3, 1, 4).to(x), 0), x, y)


@pytest.mark.parametrize("knee", [-1.0, 0.0])
@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss"])
def test_knee_of_losses_of_differences(name, knee):
    x = torch.tensor([3.0, -3.0, 1.0, 0.5])
    assert_same_outcome(lambda x, y: getattr(torch.ops.aten, name)(x, y, 0, knee), x, torch.ones(4))
    assert_same_outcome(lambda x, y: getattr(torch.ops.aten, name + "_backward")(y, x, y, 0, knee), x, torch.ones(4))


@dtypes(FLOATS)
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


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin(p, dtype, reduction):
    loss = lambda x, t, w=None: F.multi_margin_loss(x, t, p, 0.7, w, reduction=reduction)  # noqa: E731
    for rows, classes in ((6, 5), (1, 3), (3, 1), (5, 1000)):
        x, t = torch.randn(rows, classes).to(dtype).requires_grad_(), torch.randint(0, classes, (rows,))
        assert_matches_cpu(loss, x, t)
        assert_matches_cpu(loss, x, t, torch.rand(classes).to(dtype))
    assert_matches_cpu(loss, torch.randn(5).to(dtype).requires_grad_(), torch.tensor(3))
    assert_matches_cpu(loss, torch.randn(5).to(dtype).requires_grad_(), torch.tensor([3]))
    assert_matches_cpu(
        lambda x, t: loss(x.t(), t[::2]), torch.randn(4, 3).to(dtype).requires_grad_(), torch.arange(6) % 4
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(torch.float32, torch.float64)
def test_multilabel_margin(dtype, reduction):
    loss = lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction)  # noqa: E731
    target = torch.tensor([[0, 2, -1, 3, 1], [1, -1, 0, 0, 0], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4], [2, 2, 1, -1, 4]])
    assert_matches_cpu(loss, torch.randn(5, 5).to(dtype).requires_grad_(), target)
    assert_matches_cpu(loss, torch.randn(5).to(dtype).requires_grad_(), target[0])
    assert_matches_cpu(lambda x, t: loss(x.t(), t.t()), torch.randn(5, 5).to(dtype).requires_grad_(), target.t())
    wide = torch.stack([torch.randperm(300) for _ in range(3)])
    wide[:, 40] = -1
    assert_matches_cpu(loss, torch.randn(3, 300).to(dtype).requires_grad_(), wide)
    forward = torch.ops.aten.multilabel_margin_loss_forward
    assert_matches_cpu(lambda x, t: forward(x, t, 1), torch.randn(5, 5).to(dtype), target)


@pytest.mark.parametrize("grad", [1.0, -2.0, math.nan])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_of_what_keeps_the_margin(p, grad):
    """The signs of zeros are those of the loss's gradient, which is the last factor."""
    x, target = torch.eye(5) * 3, torch.tensor([0, 1, 2, 3, 0])
    gradient = torch.ops.aten.multi_margin_loss_backward
    assert_same_outcome(lambda g, x, t: gradient(g, x, t, p, 1, x[0] - 1, 1), torch.tensor(grad), x, target)


def test_margins_of_nothing_and_of_half():
    for loss in (F.multi_margin_loss, F.multilabel_margin_loss):
        shape = (0,) if loss is F.multi_margin_loss else (0, 3)
        run = lambda x, t, loss=loss: loss(x, t, reduction="none")  # noqa: E731
        assert_matches_cpu(run, torch.zeros(0, 3), torch.zeros(shape, dtype=torch.int64))
    x, t = torch.randn(4, 5).half(), torch.randint(0, 5, (4,))
    exact = F.multi_margin_loss(x.float(), t)
    assert_same(F.multi_margin_loss(x.to("dml"), t.to("dml")), exact.half())


def test_margin_errors():
    x, t = torch.randn(4, 5, device="dml"), torch.zeros(4, dtype=torch.int64, device="dml")
    with pytest.raises(RuntimeError, match="only p == 1 and p == 2 supported"):
        torch.ops.aten.multi_margin_loss(x, t, 3)
    with pytest.raises(RuntimeError, match="target size"):
        F.multi_margin_loss(x, t[:2])
    with pytest.raises(RuntimeError, match="inconsistent weight size"):
        F.multi_margin_loss(x, t, weight=x[0, :3])
    with pytest.raises(RuntimeError, match="Expected non-empty vector or matrix"):
        F.multi_margin_loss(x[:, :0], t)
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(x, t[:, None].expand(4, 3))
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Int"):
        F.multi_margin_loss(x, t.int())
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 1 with size 5"):
        F.multi_margin_loss(x, t + 7).cpu()
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size 5"):
        F.multilabel_margin_loss(x, t[:, None].expand(4, 5) + 5).cpu()


def scores(*sizes):
    return torch.randn(*sizes).requires_grad_()


MODULES = {
    "L1": (nn.L1Loss, lambda: (scores(4, 5), scores(4, 5))),
    "MSE": (nn.MSELoss, lambda: (scores(4, 5), scores(4, 5))),
    "CrossEntropy": (nn.CrossEntropyLoss, lambda: (scores(4, 5), torch.randint(0, 5, (4,)))),
    "CrossEntropySoft": (nn.CrossEntropyLoss, lambda: (scores(4, 5), torch.rand(4, 5))),
    "NLL": (nn.NLLLoss, lambda: (scores(4, 5), torch.randint(0, 5, (4,)))),
    "PoissonNLL": (nn.PoissonNLLLoss, lambda: (scores(4, 5), torch.rand(4, 5) * 5)),
    "PoissonNLLFull": (lambda **k: nn.PoissonNLLLoss(full=True, **k), lambda: (scores(4, 5), torch.rand(4, 5) * 5)),
    "GaussianNLL": (nn.GaussianNLLLoss, lambda: (scores(4, 5), scores(4, 5), torch.rand(4, 5))),
    "GaussianNLLFull": (lambda **k: nn.GaussianNLLLoss(full=True, **k), lambda: (scores(4), scores(4), torch.rand(4))),
    "KLDiv": (nn.KLDivLoss, lambda: (scores(4, 5), torch.rand(4, 5))),
    "BCE": (nn.BCELoss, lambda: (torch.rand(4, 5).requires_grad_(), torch.rand(4, 5))),
    "BCEWithLogits": (nn.BCEWithLogitsLoss, lambda: (scores(4, 5), torch.rand(4, 5))),
    "MarginRanking": (nn.MarginRankingLoss, lambda: (scores(5), scores(5), torch.randn(5).sign())),
    "HingeEmbedding": (nn.HingeEmbeddingLoss, lambda: (scores(4, 5), torch.randn(4, 5).sign())),
    "MultiLabelMargin": (nn.MultiLabelMarginLoss, lambda: (scores(1, 4), torch.tensor([[3, 0, -1, 1]]))),
    "Huber": (nn.HuberLoss, lambda: (scores(4, 5), scores(4, 5))),
    "SmoothL1": (nn.SmoothL1Loss, lambda: (scores(4, 5), scores(4, 5))),
    "SoftMargin": (nn.SoftMarginLoss, lambda: (scores(4, 5), torch.randn(4, 5).sign())),
    "MultiLabelSoftMargin": (nn.MultiLabelSoftMarginLoss, lambda: (scores(4, 5), torch.randint(0, 2, (4, 5)).float())),
    "CTC": (
        nn.CTCLoss,
        lambda: (scores(12, 2, 5).log_softmax(2), torch.randint(1, 5, (2, 4)), [12, 10], [4, 3]),
    ),
    "CosineEmbedding": (nn.CosineEmbeddingLoss, lambda: (scores(4, 5), scores(4, 5), torch.randn(4).sign())),
    "MultiMargin": (nn.MultiMarginLoss, lambda: (scores(4, 5), torch.randint(0, 5, (4,)))),
    "TripletMargin": (nn.TripletMarginLoss, lambda: (scores(4, 5), scores(4, 5), scores(4, 5))),
    "TripletSwap": (
        lambda **k: nn.TripletMarginLoss(swap=True, p=1.5, **k),
        lambda: (scores(4, 5), scores(4, 5), scores(4, 5)),
    ),
    "TripletMarginWithDistance": (
        nn.TripletMarginWithDistanceLoss,
        lambda: (scores(4, 5), scores(4, 5), scores(4, 5)),
    ),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, reduction):
    make, inputs = MODULES[name]
    assert_matches_cpu(make(reduction=reduction), *inputs())


def test_adaptive_softmax():
    def run(x, t):
        torch.manual_seed(2)
        layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[4, 10]).to(x.device)
        output, loss = layer(x, t)
        return output, loss, layer.log_prob(x), layer.predict(x)

    # In float64 the layer would draw other weights.
    assert_matches_cpu(run, scores(6, 8), torch.tensor([0, 5, 12, 19, 3, 9]), widen=False)


def ctc(frames, batch, labels, longest, dtype=torch.float32):
    x = torch.randn(frames, batch, labels).to(dtype).requires_grad_()
    counts = torch.randint(1, longest + 1, (batch,))
    counts[0] = longest
    lengths = torch.randint(2 * longest + 1, frames + 1, (batch,))
    return x, torch.randint(1, labels, (batch, longest)), lengths.tolist(), counts.tolist()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@dtypes(torch.float32, torch.float64)
def test_ctc(dtype, reduction):
    loss = lambda x, t, n, m, **k: F.ctc_loss(x.log_softmax(-1), t, n, m, reduction=reduction, **k)  # noqa: E731
    x, t, n, m = ctc(20, 4, 6, 7, dtype)
    assert_matches_cpu(loss, x, t, n, m)
    assert_matches_cpu(loss, x, t.int(), torch.tensor(n), torch.tensor(m))
    assert_matches_cpu(loss, x, torch.cat([row[:k] for row, k in zip(t, m, strict=True)]), n, m)
    assert_matches_cpu(loss, x, t - 1, n, m, blank=5)
    # Too few frames, no frames, no labels.
    assert_matches_cpu(loss, x, t, [3, 20, 20, 20], [7, 0, 2, 7], zero_infinity=True)
    assert_matches_cpu(lambda *a: loss(*a).detach(), x, t, [3, 20, 20, 20], [7, 0, 2, 7])
    assert_matches_cpu(lambda x, t: loss(x[:, 0], t[0], n[:1], m[:1]), x, t)


def test_ctc_of_many_labels_and_frames():
    loss = lambda x, t, n, m: F.ctc_loss(x.log_softmax(2), t, n, m, reduction="sum")  # noqa: E731
    assert_matches_cpu(loss, *ctc(500, 3, 40, 200, torch.float64))
    # More states than shared memory holds.
    x, t = torch.randn(1100, 1, 5, dtype=torch.float64).requires_grad_(), torch.randint(1, 5, (1, 520))
    assert_matches_cpu(loss, x, t, [1100], [520])


def test_ctc_lengths_on_the_device():
    x, t, n, m = ctc(20, 4, 6, 7)
    logs, n, m = x.detach().log_softmax(2), torch.tensor(n), torch.tensor(m)
    exact = torch.ops.aten._ctc_loss.Tensor(logs, t, n, m)[0]
    for lengths in ((n, m), (n.to("dml"), m.to("dml").int())):
        assert_same(torch.ops.aten._ctc_loss.Tensor(logs.to("dml"), t.to("dml"), *lengths)[0], exact, 1e-5, 1e-5)


def test_ctc_errors():
    x, t, n, m = ctc(20, 4, 6, 7)
    x, t = x.detach().log_softmax(2).to("dml"), t.to("dml")
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(x, t, n, m, blank=6)
    with pytest.raises(RuntimeError, match="input_lengths must be of size batch_size"):
        F.ctc_loss(x, t, n[:2], m)
    with pytest.raises(RuntimeError, match="Expected input_lengths to have value at most 20, but got value 21"):
        F.ctc_loss(x, t, [21, 20, 20, 20], m)
    with pytest.raises(RuntimeError, match="Expected tensor to have size at least 8 at dimension 1"):
        F.ctc_loss(x, t, n, [8, 1, 1, 1])
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        F.ctc_loss(x.half(), t, n, m)
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 2 with size 6"):
        F.ctc_loss(x, torch.full_like(t, 9), n, m).cpu()
