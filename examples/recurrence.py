"""A recurrence h = tanh(W h), W of 2x2, whose output feeds back for 10 steps, learns a noisy spiral
by Adam.
"""

from __future__ import annotations

import sys

import torch
from compare import Training, compare
from torch import nn

STEPS = 10


def unroll(weight: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Return the states after 1, 2, ... 10 steps, one per row."""
    states = []
    state = start
    for _ in range(STEPS):
        state = torch.tanh(weight @ state)
        states.append(state)
    return torch.stack(states)


def train(device: torch.device) -> Training:
    """Train for 100 epochs on one sequence."""
    start = torch.tensor([0.9, -0.4])
    # The noise keeps the loss away from 0, where a relative difference in float32 is meaningless.
    wanted = unroll(torch.tensor([[0.9, -0.5], [0.5, 0.9]]), start) + 0.1 * torch.randn(STEPS, 2)
    weight = nn.Parameter((0.5 * torch.randn(2, 2)).to(device))
    start, wanted = start.to(device), wanted.to(device)
    optimizer = torch.optim.Adam([weight], lr=0.05)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(unroll(weight, start), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return Training(losses, {"weight": weight})


if __name__ == "__main__":
    sys.exit(compare("2x2 tanh recurrence", train))
