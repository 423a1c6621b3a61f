"""Fits a line to 100 noisy points of y = 2x + 1, by gradient descent."""

from __future__ import annotations

import sys

import torch
from compare import Training, compare
from torch import nn


def train(device: torch.device) -> Training:
    """Train for 100 epochs of one batch."""
    x = torch.linspace(-1, 1, 100).unsqueeze(1)
    y = 2 * x + 1 + 0.1 * torch.randn(100, 1)
    model = nn.Linear(1, 1).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return Training(losses, dict(model.named_parameters()))


if __name__ == "__main__":
    sys.exit(compare("Linear regression", train))
