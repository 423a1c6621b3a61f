"""A perceptron with 10 inputs, 20 hidden units and 1 output learns a smooth function, by Adam."""

from __future__ import annotations

import sys

import torch
from compare import Training, compare
from torch import nn


def train(device: torch.device) -> Training:
    """Train for 100 epochs of one batch of 64."""
    x = torch.randn(64, 10)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
    model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 1)).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return Training(losses, dict(model.named_parameters()))


if __name__ == "__main__":
    sys.exit(compare("Perceptron 10-20-1", train))
