"""The policy, common to all ways to train: linear layers, an activation between them, and a
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dml_robot.errors import CheckpointError
from dml_robot.learn import checkpoint

SHIPPED = Path(__file__).parent / "checkpoints" / "reach.pt"
"""The checkpoint that comes with the package."""

_ACTIVATIONS: dict[str, type[nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}
_BOUNDS: dict[str, type[nn.Module]] = {"clip": nn.Hardtanh, "tanh": nn.Tanh}


class Policy(nn.Module):
    """Maps observations (..., 24) to actions (..., 6) in [-1, 1], deterministically."""

    def __init__(self, layers: Sequence[nn.Linear], activation: str, bound: str) -> None:
        """Copy the layers to the CPU; `activation` is "elu", "relu" or "tanh", `bound` is "clip" or
        "tanh".
        """
        super().__init__()
        if not layers or activation not in _ACTIVATIONS or bound not in _BOUNDS:
            raise ValueError(f"expected layers, an activation and a bound, but got {activation!r} and {bound!r}")
        self._activation, self._bound = activation, bound
        modules: list[nn.Module] = []
        for layer in layers:
            modules += [_linear(layer.state_dict()), _ACTIVATIONS[activation]()]
        modules[-1] = _BOUNDS[bound]()
        self.network = nn.Sequential(*modules).requires_grad_(False)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the actions of a batch of observations."""
        return self.network(observation)

    @torch.no_grad()
    def act(self, observation: Any) -> Any:
        """Return actions for observations, of the same kind: a tensor on its device, or an
        array.
        """
        if isinstance(observation, Tensor):
            return self(observation)
        device = next(self.parameters()).device
        return self(torch.as_tensor(np.asarray(observation, np.float32), device=device)).cpu().numpy()

    def describe(self) -> dict[str, Any]:
        """Return the policy as plain values and tensors, for a checkpoint."""
        layers = [
            {"weight": layer.weight.detach().cpu().clone(), "bias": layer.bias.detach().cpu().clone()}
            for layer in self.network
            if isinstance(layer, nn.Linear)
        ]
        return {"layers": layers, "activation": self._activation, "bound": self._bound}

    @staticmethod
    def of(description: dict[str, Any]) -> Policy:
        """Return the policy of a description."""
        return Policy(
            [_linear(each) for each in description["layers"]], description["activation"], description["bound"]
        )


def _linear(state: dict[str, Tensor]) -> nn.Linear:
    """Return a layer, on the CPU, with a copy of these weights. Draws no random numbers, so that a
    run's random numbers do not change.
    """
    outputs, inputs = state["weight"].shape
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)
    layer.load_state_dict(state)
    return layer


def load(path: Path | str | None, device: torch.device | str = "cpu") -> Policy:
    """Return the policy of a checkpoint (None: the package's own) on a device; raise
    CheckpointError if it has none.
    """
    path = SHIPPED if path is None else Path(path)
    contents = checkpoint.read(path)
    try:
        policy = Policy.of(contents["policy"])
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise CheckpointError(f"{path}: the policy in this checkpoint cannot be used ({error})") from error
    return policy.to(device)
