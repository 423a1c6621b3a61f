"""The networks of PPO: an actor with a Gaussian about its mean, and a critic."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn


def perceptron(inputs: int, hidden: tuple[int, ...], outputs: int, last_gain: float) -> nn.Sequential:
    """Return linear layers with ELU between them, initialised orthogonally; the last layer's gain
    is `last_gain`.
    """
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, *hidden, outputs)):
        layers += [nn.Linear(before, after), nn.ELU()]
    layers.pop()
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in linear:
        nn.init.orthogonal_(layer.weight, last_gain if layer is linear[-1] else math.sqrt(2))
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class ActorCritic(nn.Module):
    """An actor and a critic without shared weights.

    The actor's actions are normally distributed about `actor(observation)` with the standard
    deviation `log_deviation.exp()`, the same for every observation. They are not bounded: the
    caller clips them to [-1, 1].
    """

    def __init__(self, observations: int, actions: int, hidden: tuple[int, ...]) -> None:
        """Create the networks on the CPU, with PyTorch's default generator, so that they are the
        same for every device.
        """
        super().__init__()
        self.actor = perceptron(observations, hidden, actions, 0.01)
        self.critic = perceptron(observations, hidden, 1, 1.0)
        self.log_deviation = nn.Parameter(torch.full((actions,), -0.5))

    def value(self, observation: Tensor) -> Tensor:
        """Return the critic's estimate, of shape (...), of observations (..., features)."""
        return self.critic(observation).squeeze(-1)

    def log_probability(self, mean: Tensor, action: Tensor) -> Tensor:
        """Return the log density, of shape (...), of actions (..., joints) about their means."""
        distance = (action - mean) * torch.exp(-self.log_deviation)
        return -0.5 * distance.square().sum(-1) - self.log_deviation.sum() - _LOG_ROOT_2_PI * action.shape[-1]


_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)
