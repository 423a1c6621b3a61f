"""Fused cross-entropy with class indices: losses, gradients, and the cases that PyTorch
composes.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same
from tests.support.dtypes import FLOATS, dtypes
from tests.support.launches import launches

REDUCTIONS = ["none", "mean", "sum"]
# Rows that are held in registers or not, whole 16-byte vectors or not, and a single class.
ROWS = [(6, 10), (3, 1), (5, 1000), (2, 4097), (3, 5000), (2, 8192)]


def targets(classes: int, *sizes: int, ignored: int = -100) -> torch.Tensor:
    """Targets, some of which are ignored if there are several."""
    t = torch.randint(0, classes, sizes)
    if t.numel() > 1:
        t.view(-1)[t.numel() // 2] = ignored
    return t


def is_fused(loss: torch.Tensor) -> bool:
    return loss.grad_fn is not None and "CrossEntropy" in loss.grad_fn.name()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", ROWS, ids=str)
@dtypes(FLOATS)
def test_rows(shape: tuple[int, int], dtype: torch.dtype, reduction: str) -> None:
    x, t = (torch.randn(shape) * 4).to(dtype).requires_grad_(), targets(shape[1], shape[0])
    loss = lambda x, t, *w: F.cross_entropy(x, t, *w, reduction=reduction)  # noqa: E731
    assert is_fused(assert_matches_cpu(loss, x, t))
    assert_matches_cpu(loss, x, t, (torch.rand(shape[1]) + 0.5).to(dtype))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(6, 10), (2, 5000), (2, 5, 3, 4), (2, 70, 3)], ids=str)
@dtypes(torch.float32, torch.bfloat16)
def test_smoothing(shape: tuple[int, ...], dtype: torch.dtype, reduction: str) -> None:
    x = (torch.randn(shape) * 2).to(dtype).requires_grad_()
    t = targets(shape[1], shape[0], *shape[2:], ignored=1)
    for smoothing in (0.1, 1.0):
        options = {"ignore_index": 1, "label_smoothing": smoothing, "reduction": reduction}
        loss = lambda x, t, options=options: F.cross_entropy(x, t, **options)  # noqa: E731
        # In a sum of the losses, half of the logarithms cancel.
        assert is_fused(assert_matches_cpu(loss, x, t, terms=8))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4, 5, 7), (2, 3, 4, 6), (1, 2, 2, 3, 4), (2, 5000, 3), (2, 9, 1, 1)], ids=str)
@dtypes(torch.float32, torch.float16)
def test_images(shape: tuple[int, ...], dtype: torch.dtype, reduction: str) -> None:
    x, t = (torch.randn(shape) * 3).to(dtype), targets(shape[1], shape[0], *shape[2:])
    loss = lambda x, t, *w: F.cross_entropy(x, t, *w, reduction=reduction)  # noqa: E731
    for logits in (x, x.movedim(1, -1).contiguous().movedim(-1, 1), x.transpose(0, -1).contiguous().transpose(0, -1)):
        assert is_fused(assert_matches_cpu(loss, logits.detach().requires_grad_(), t))
    assert_matches_cpu(loss, x.requires_grad_(), t.mT.contiguous().mT, torch.rand(shape[1]).to(dtype))


def test_other_targets() -> None:
    loss = F.cross_entropy
    assert_matches_cpu(loss, torch.randn(7, requires_grad=True), torch.tensor(4))
    assert_matches_cpu(loss, torch.randn(4, 7, requires_grad=True), torch.tensor([0, 6, 2, 255], dtype=torch.uint8) % 7)
    assert_matches_cpu(loss, torch.randn(7, 4).t().requires_grad_(), torch.randint(0, 7, (8,))[::2])
    assert_matches_cpu(loss, torch.randn(65, 9)[1:].requires_grad_(), torch.randint(0, 9, (64,)))
    assert_matches_cpu(loss, torch.randn(8, 10)[:, 1:].requires_grad_(), torch.randint(0, 9, (8,)))


def test_what_is_composed() -> None:
    """Probabilities, label smoothing with weights, and a mean over nothing."""
    x, t = torch.randn(6, 5, requires_grad=True), targets(5, 6)
    assert_matches_cpu(F.cross_entropy, x, torch.rand(6, 5))
    assert_matches_cpu(lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.2), x, t, torch.rand(5))
    weight = torch.rand(5, device="dml", requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        F.cross_entropy(x.to("dml"), t.to("dml"), weight)
    assert_matches_cpu(F.cross_entropy, torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("classes", [8, 5000])
def test_special_values(classes: int, reduction: str) -> None:
    x = torch.randn(8, classes)
    x[0, 3], x[1, 2], x[3, 1] = math.inf, -math.inf, math.nan
    x[2] = -math.inf
    x[4] = 3e38 * torch.tensor([1.0, -1.0]).repeat(classes // 2)
    x[5] += 1000.0
    t = torch.tensor([3, 2, 0, 0, 1, 4, -100, 6])
    x[6, 0] = math.nan  # the logits of an ignored target
    for row in range(8):
        logits = x[row : row + 1].clone().requires_grad_()
        assert_matches_cpu(lambda x, t: F.cross_entropy(x, t, reduction=reduction), logits, t[row : row + 1])
    assert_matches_cpu(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x.requires_grad_(), t)


def test_all_are_ignored() -> None:
    x, t = torch.randn(4, 6, requires_grad=True), torch.full((4,), -100)
    for reduction in REDUCTIONS:
        assert_matches_cpu(lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r), x, t)


def test_large_logits_keep_small_losses() -> None:
    """A row's largest logit and the logarithm are saved separately: their sum would only have the
    digits of the logit.
    """
    x = torch.randn(16, 50) + 30_000.0
    t = x.argmax(1)
    x[torch.arange(16), t] += 3.0
    assert_matches_cpu(F.cross_entropy, x.requires_grad_(), t)


@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3, 3), (3, 5000)], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_target_out_of_range_raises(shape: tuple[int, ...], reduction: str) -> None:
    x = torch.zeros(shape, device="dml", requires_grad=True)
    good = torch.zeros(shape[:1] + shape[2:], dtype=torch.int64)
    for bad in (shape[1], -1):
        t = good.clone()
        t.view(-1)[2] = bad
        words = f"index {bad} is out of bounds for dimension 1 with size {shape[1]}"
        with pytest.raises(IndexError, match=words):
            F.cross_entropy(x, t.to("dml"), reduction=reduction).cpu()
    loss = F.cross_entropy(x, good.to("dml"), reduction="mean")
    assert loss.item() == pytest.approx(math.log(shape[1]))


def test_errors_are_the_cpu_s() -> None:
    def outcome(device: str, *sizes: int, **options: Any) -> tuple[type, str]:
        with pytest.raises(Exception) as caught:
            F.cross_entropy(torch.zeros(3, 5, device=device), torch.zeros(sizes, device=device).long(), **options)
        return caught.type, str(caught.value)

    for sizes, options in (((2,), {}), ((3, 2), {}), ((3,), {"label_smoothing": 1.5})):
        assert outcome("dml", *sizes, **options) == outcome("cpu", *sizes, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_second_derivatives(reduction: str) -> None:
    x, t, weight = torch.randn(5, 7, dtype=torch.float64), targets(7, 5), torch.rand(7, dtype=torch.float64)

    def run(device: str, smoothing: float, *weights: torch.Tensor) -> list[torch.Tensor]:
        logits = x.to(device).requires_grad_()
        loss = F.cross_entropy(
            logits, t.to(device), *(w.to(device) for w in weights), reduction=reduction, label_smoothing=smoothing
        )
        (first,) = torch.autograd.grad(loss.square().sum(), logits, create_graph=True)
        (second,) = torch.autograd.grad((first * torch.arange(7.0, device=device)).sum(), logits)
        return [loss, first, second]

    assert_same(run("dml", 0.0), run("cpu", 0.0))
    assert_same(run("dml", 0.0, weight), run("cpu", 0.0, weight))
    assert_same(run("dml", 0.2), run("cpu", 0.2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    """Losses are float32, computed from unconverted logits, and gradients have the logits'
    dtype.
    """
    x, t = torch.randn(6, 4000).to(dtype), targets(4000, 6)
    weight = torch.rand(4000) + 0.5
    for weights in ((), (weight,), (weight.to(dtype),)):
        logits = x.to("dml").requires_grad_()
        with torch.autocast("dml", dtype=dtype):
            loss = F.cross_entropy(logits, t.to("dml"), *(w.to("dml") for w in weights))
            soft = F.cross_entropy(logits, torch.rand(6, 4000).to("dml"))
        assert is_fused(loss) and loss.dtype == torch.float32 and soft.dtype == torch.float32
        loss.backward()
        exact = x.double().requires_grad_()
        expected = F.cross_entropy(exact, t, *(w.double() for w in weights))
        expected.backward()
        assert_same(loss, expected.float(), exact=expected)
        assert_same(logits.grad, exact.grad.to(dtype), exact=exact.grad, atol=2.0**-24)
        with torch.autocast("dml", dtype=dtype):
            again = F.cross_entropy(logits, t.to("dml"))
            (first,) = torch.autograd.grad(again, logits, create_graph=True)
        assert first.dtype == dtype and first.requires_grad
    with torch.autocast("dml", dtype=dtype):
        assert F.cross_entropy(x.double().to("dml"), t.to("dml")).dtype == torch.float64


def test_functional_transforms() -> None:
    x, t = torch.randn(4, 3, 6), torch.randint(0, 6, (4, 3))
    t[1, 2] = 5

    def each(x: torch.Tensor, t: torch.Tensor) -> Any:
        loss = lambda x, t: F.cross_entropy(x, t)  # noqa: E731
        gradient = torch.func.grad(loss)
        tangent = torch.func.jvp(lambda x: loss(x, t[0]), (x[0],), (torch.ones_like(x[0]),))
        return torch.func.vmap(loss)(x, t), torch.func.vmap(gradient)(x, t), tangent

    assert_matches_cpu(each, x, t)


def test_compiled() -> None:
    compiled = torch.compile(lambda x, t: F.cross_entropy(x * 2, t), backend="aot_eager", dynamic=False)
    assert_matches_cpu(compiled, torch.randn(5, 6, requires_grad=True), targets(6, 5))


def test_inference_mode_and_no_grad() -> None:
    x, t = torch.randn(5, 6), targets(6, 5)
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            assert_matches_cpu(F.cross_entropy, x, t)
    assert F.cross_entropy(x.to("dml"), t.to("dml")).grad_fn is None


def test_launches() -> None:
    """One launch for the rows, one for the mean, and one for the gradient."""
    x, t = torch.randn(64, 300, device="dml", requires_grad=True), torch.zeros(64, dtype=torch.int64, device="dml")
    one = torch.ones((), device="dml")
    assert launches(lambda: F.cross_entropy(x, t)) == 2
    assert launches(lambda: torch.autograd.grad(F.cross_entropy(x, t), x, one)) == 3


def test_the_same_bits_as_log_softmax() -> None:
    for shape in ROWS:
        x, t = torch.randn(shape).to("dml"), torch.randint(0, shape[1], shape[:1]).to("dml")
        losses = F.cross_entropy(x, t, reduction="none")
        assert torch.equal(losses, -x.log_softmax(1).gather(1, t[:, None])[:, 0])
        # Whatever the address of the rows, and whatever is next to them.
        moved = torch.cat([x[:1], x]).view(-1)[shape[1] :].view(shape)
        assert torch.equal(losses, F.cross_entropy(moved, t, reduction="none"))


@dtypes(torch.float16, torch.float32, torch.float64)
def test_rows_of_every_short_length(dtype: torch.dtype) -> None:
    """With several rows: writing one does not change the others, or the memory after the last
    one.
    """
    for classes in range(1, 40):
        logits, target = torch.randn(5, classes).to(dtype), torch.randint(0, classes, (5,))
        want, got = (logits.to(device, copy=True).requires_grad_() for device in ("cpu", "dml"))
        for x in (want, got):
            F.cross_entropy(x, target.to(x.device)).backward()
        tolerance = {"rtol": 1e-2, "atol": 1e-3} if dtype == torch.float16 else {"rtol": 1e-5, "atol": 1e-6}
        torch.testing.assert_close(got.grad.cpu(), want.grad, **tolerance, msg=lambda text, n=classes: f"{n}: {text}")
