"""Mixed precision converges like float32: for the digits of `python -m torch_dml demo`, and a tiny
GPT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn
from torch_dml.cli.models import GPT, Digits, digits_cnn, load_digits

from tests.support.dtypes import HALVES, dtypes

BATCH = 64
WORDS, LENGTH, STEPS = 32, 12, 50


def train(
    model: nn.Module,
    loss_of: Callable[[nn.Module, int], torch.Tensor],
    steps: int,
    rate: float,
    lower: torch.dtype | None,
) -> torch.Tensor:
    """The losses of some steps of Adam: in float32, in float16 with loss scaling, or in
    bfloat16.
    """
    optimizer = torch.optim.Adam(model.parameters(), rate)
    scaler = torch.amp.GradScaler("dml", enabled=lower == torch.float16)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast("dml", lower, enabled=lower is not None):
            loss = loss_of(model, step)
        assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@cache
def digits() -> Digits:
    return load_digits()


@cache
def digits_result(lower: torch.dtype | None) -> tuple[float, float]:
    """The mean of the last losses and the test accuracy after three epochs."""
    torch.manual_seed(0)
    data, model = digits(), digits_cnn().to("dml")
    images, labels = data.train_images.to("dml"), data.train_labels.to("dml")
    batches = [batch for _ in range(3) for batch in torch.randperm(len(labels)).to("dml").split(BATCH)]

    def loss(model: nn.Module, step: int) -> torch.Tensor:
        return F.cross_entropy(model(images[batches[step]]), labels[batches[step]])

    losses = train(model, loss, len(batches), 4e-3, lower)
    with torch.no_grad(), torch.autocast("dml", lower, enabled=lower is not None):
        guesses = model(data.test_images.to("dml")).argmax(1).cpu()
    return losses[-20:].mean().item(), (guesses == data.test_labels).float().mean().item()


@cache
def gpt_result(lower: torch.dtype | None) -> tuple[float, float]:
    """The first loss, and the mean of the last: sequences in which each word determines the next
    one.
    """
    torch.manual_seed(0)
    model = GPT(layers=2, width=32, heads=2, context=LENGTH, words=WORDS).to("dml")
    follows = torch.randperm(WORDS)
    words = [torch.randint(WORDS, (STEPS, 16))]
    while len(words) <= LENGTH:
        words.append(follows[words[-1]])
    sequences = torch.stack(words, -1).to("dml")

    def loss(model: nn.Module, step: int) -> torch.Tensor:
        return F.cross_entropy(model(sequences[step, :, :-1]).flatten(0, 1), sequences[step, :, 1:].flatten())

    losses = train(model, loss, STEPS, 1e-2, lower)
    return losses[0].item(), losses[-10:].mean().item()


@dtypes(HALVES)
def test_digits(dtype: torch.dtype) -> None:
    """The last losses within 0.05 and the accuracy within 2 % of float32's."""
    (loss, accuracy), (wanted_loss, wanted_accuracy) = digits_result(dtype), digits_result(None)
    assert wanted_accuracy > 0.9
    assert abs(loss - wanted_loss) < 0.05
    assert abs(accuracy - wanted_accuracy) < 0.02


@dtypes(HALVES)
def test_a_tiny_gpt(dtype: torch.dtype) -> None:
    """The last losses within 3 % of the first loss from float32's, which are less than an eighth of
    it.
    """
    (_, loss), (first, wanted) = gpt_result(dtype), gpt_result(None)
    assert wanted < first / 8
    assert abs(loss - wanted) < 0.03 * first
