"""The common base of both simulators: many arms with one task, as gymnasium's `VectorEnv`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import SettingsError
from ..task import ACTION_SIZE, OBSERVATION_SIZE, ReachTask


class Arms(VectorEnv[Any, Any, Any]):
    """Arms that all have the same task. Inputs and outputs are tensors or arrays, depending on the
    simulator.

    `step` takes (N, 6) actions and returns (N, 24) observations, (N,) rewards, (N,) terminated,
    (N,) truncated, and for the state before any new episode (N,) "success", (N,) "distance"
    (metres), (N,) "violations" (0 or 1) and (N, 24) "final_obs", with (N,) "_final_obs" for the
    arms whose episode ended. A new one begins in the same step.

    Args:
        count: number of arms.
        task: their task.
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, count: int, task: ReachTask) -> None:
        """Set the spaces."""
        self.num_envs, self.task = count, task
        # Coordinates and fractions are about -1 to 1, and a servo may pass the ends of its motion
        # slightly.
        self.single_observation_space = Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
        self.single_action_space = Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise SettingsError unless actions have the shape (N, 6)."""
        expected = (self.num_envs, ACTION_SIZE)
        if tuple(shape) != expected:
            raise SettingsError(f"actions have shape {tuple(shape)}, not {expected}")

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, from which a later run continues exactly, on the CPU."""

    @abstractmethod
    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a `state_dict`; raise CheckpointError if it does not fit these arms."""
