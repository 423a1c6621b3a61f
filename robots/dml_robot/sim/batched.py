"""Thousands of arms in torch, on any device: kinematics, with limits of position, speed and
acceleration.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..arm.motion import Motion
from ..errors import SettingsError
from ..task import ANGLES, SPEEDS, ReachTask
from .arms import Arms
from .episodes import Episodes, EpisodeState


class BatchedArms(Arms):
    """Arms that follow their motion exactly. Tensors in and out are on the device, and `step` never
    waits for it.

    Args:
        count: number of arms.
        device: of the arms' state.
        seed: of first poses and targets.
        task: their task.
    """

    def __init__(self, count: int, device: torch.device, seed: int, task: ReachTask) -> None:
        """Begin the first episodes."""
        super().__init__(count, task)
        self.device = device
        self._motion = Motion(task.period, device)
        self._episodes = Episodes(task, count, device, seed)

    @property
    def state(self) -> EpisodeState:
        """The complete state that changes from step to step. A step replaces it and does not write
        into its tensors.
        """
        return self._episodes.state

    @state.setter
    def state(self, state: EpisodeState) -> None:
        self._episodes.state = state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Tensor, dict[str, Any]]:
        """Begin new episodes for all arms; with a seed, from its first episode.

        Returns:
            (N, 24) observations, and an empty dictionary.
        """
        self._episodes.restart(seed)
        return self._episodes.observation(), {}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Move all arms for a period.

        Args:
            actions: (N, 6) real numbers on the device. No gradient flows through a step.

        Raises:
            SettingsError: if `actions` are something else.
        """
        if not isinstance(actions, Tensor) or actions.is_complex() or actions.device.type != self.device.type:
            kind = f"{actions.dtype} on {actions.device}" if isinstance(actions, Tensor) else type(actions).__name__
            raise SettingsError(f"actions have to be a tensor of real numbers on {self.device}, not {kind}")
        self.check_shape(actions.shape)
        # Detached: the autograd graph of all steps since the first would never be freed.
        actions = actions.detach()
        invalid = actions.isnan().any(-1)
        action = actions.float().nan_to_num(0.0).clamp(-1.0, 1.0)
        arms = self._episodes.state.arms
        angles, speeds = self._motion.advance(arms[:, ANGLES], arms[:, SPEEDS], action)
        violated = self._episodes.limits.beyond(angles, speeds) | invalid
        moved = self._episodes.advance(angles, speeds, action)
        info = {
            "success": moved.terminated,
            "distance": moved.distance,
            "violations": violated.int(),
            "final_obs": moved.final_observation,
            "_final_obs": moved.began,
        }
        return moved.observation, moved.reward, moved.terminated, moved.truncated, info

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, from which a later run continues exactly, on the CPU."""
        return self._episodes.state_dict()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a `state_dict`; raise CheckpointError if it does not fit these arms."""
        self._episodes.load_state_dict(saved)
