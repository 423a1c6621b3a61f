"""The networks and data that `demo` and `bench` train."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Digits:
    """scikit-learn's handwritten digits: images (n, 1, 8, 8) in float32 from 0 to 1, and labels, on
    the CPU.
    """

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


def load_digits() -> Digits:
    """Return the digits, with one in five reserved for the test."""
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
    """Return a perceptron with two hidden layers, as in reinforcement learning."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
    )


class GPT(nn.Module):
    """A decoder with the architecture of GPT-2 (Radford and others, 2019), whose output layer
    shares its weight with the embedding.
    """

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, context: int = 1024, words: int = 50_257):
        """Create one with GPT-2's smallest size, 124 million weights, by default."""
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits (batch, length, words) of the next token after each of the tokens
        (batch, length; int64).
        """
        x = self.words(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = nn.functional.linear(self.norm(x), self.words.weight)
        return logits


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.queries_keys_values(self.before_attention(x)).chunk(3, 2)
        )
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(attended.transpose(1, 2).flatten(2))
        added: torch.Tensor = self.mlp(self.before_mlp(x))
        return x + added


class Tagger(nn.Module):
    """An LSTM with a linear layer on every step."""

    def __init__(self, inputs: int = 64, width: int = 128, classes: int = 10) -> None:
        """Make one layer of `width` cells."""
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, batch_first=True)
        self.out = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits (batch, length, classes) of inputs (batch, length, inputs)."""
        logits: torch.Tensor = self.out(self.lstm(x)[0])
        return logits
