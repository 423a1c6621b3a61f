"""Adapts a simulator of numpy arrays to tensors, so that learning code need not distinguish
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arms import Arms
from .mujoco import MujocoArms


class AsTorch(Arms):
    """`MujocoArms` with tensors on a device as inputs and outputs.

    Args:
        arms: the simulator.
        device: of the tensors.
    """

    def __init__(self, arms: MujocoArms, device: torch.device) -> None:
        """Wrap the simulator."""
        super().__init__(arms.num_envs, arms.task)
        self._arms, self.device = arms, device

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Tensor, dict[str, Any]]:
        """As `MujocoArms.reset`."""
        observation, info = self._arms.reset(seed=seed, options=options)
        return self._tensor(observation), info

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        """As `MujocoArms.step`. Waits for the device to read the actions back."""
        observation, reward, terminated, truncated, info = self._arms.step(actions.detach().float().cpu().numpy())
        tensors = (self._tensor(array) for array in (observation, reward, terminated, truncated))
        return *tensors, {name: self._tensor(array) for name, array in info.items()}

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the simulator's threads."""
        self._arms.close()

    def state_dict(self) -> dict[str, Any]:
        """As `MujocoArms.state_dict`."""
        return self._arms.state_dict()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """As `MujocoArms.load_state_dict`."""
        self._arms.load_state_dict(saved)

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)
