"""The networks and data that `demo` and `bench` train."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Digits:
    """scikit-learn's handwritten digits: images (n, 1, 8, 8) in float32 from 0 to 1, and labels, on the CPU."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


def load_digits() -> Digits:
    """Return the digits, one in five kept for the test."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("the digits come with scikit-learn: `pip install scikit-learn`") from error
    raw = datasets.load_digits()
    images = torch.tensor(raw.images, dtype=torch.float32).div_(16).unsqueeze(1)
    labels = torch.tensor(raw.target, dtype=torch.int64)
    test = torch.arange(len(labels)) % 5 == 4
    return Digits(images[~test], labels[~test], images[test], labels[test])


def digits_cnn() -> nn.Sequential:
    """Return a small convolutional network for images of 8x8."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


def mlp(inputs: int = 8, width: int = 64, outputs: int = 4) -> nn.Sequential:
    """Return a perceptron with two hidden layers, as reinforcement learning trains."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
    )
