"""Suite `train`: one step of small networks, forward, backward and Adam."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from torch_dml.cli.bench.measure import Bench, Row
from torch_dml.cli.models import digits_cnn, mlp

_BATCH = 64
_Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def run(bench: Bench) -> list[Row]:
    """Measure a step of the network for digits and of a perceptron."""
    images, labels = torch.rand(_BATCH, 1, 8, 8), torch.randint(10, (_BATCH,))
    inputs, wanted = torch.randn(_BATCH, 8), torch.randn(_BATCH, 4)
    return [
        _row(bench, f"digits CNN, batch {_BATCH}, Adam", digits_cnn, images, labels, cross_entropy),
        _row(bench, f"8-64-64-4 tanh MLP, batch {_BATCH}, Adam", mlp, inputs, wanted, mse_loss),
    ]


def _row(
    bench: Bench, name: str, make: Callable[[], nn.Module], inputs: torch.Tensor, wanted: torch.Tensor, loss: _Loss
) -> Row:
    row = Row(f"{name}: one step", "ms", more_is_better=False)
    for device in bench.devices:
        bench.tell(f"{name} on {device}")
        step = _step(make().to(device), inputs.to(device), wanted.to(device), loss)
        seconds = bench.seconds(device, step, 5 if bench.quick else 50)
        if seconds is not None:
            bench.put(row, device, seconds * 1e3)
    return row


def _step(model: nn.Module, inputs: torch.Tensor, wanted: torch.Tensor, loss: _Loss) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss(model(inputs), wanted).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step
