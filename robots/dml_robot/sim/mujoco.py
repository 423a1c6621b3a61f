"""Arms with masses and servos in MuJoCo, simulated by its threaded rollout on the CPU's cores."""

from __future__ import annotations

import os
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.rollout import Rollout
from numpy.typing import NDArray

from ..arm.description import JOINTS_COUNT
from ..arm.mjcf import TIMESTEP, document
from ..arm.motion import Motion
from ..errors import CheckpointError, SettingsError
from ..task import ANGLES, SPEEDS, ReachTask
from .arms import Arms
from .episodes import Episodes

Array = NDArray[Any]


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class MujocoArms(Arms):
    """Arms whose servos follow the motion that `Motion` plans. Inputs and outputs are numpy arrays.

    Args:
        count: number of arms.
        seed: of first poses and targets.
        task: their task.
        threads: number of simulating threads; if None, the number of processors that this process
            may use.

    Raises:
        SettingsError: if the control period is not a multiple of MuJoCo's step.
    """

    def __init__(self, count: int, seed: int, task: ReachTask, threads: int | None = None) -> None:
        """Start the threads and begin the first episodes."""
        super().__init__(count, task)
        self._substeps = round(task.period / TIMESTEP)
        if abs(self._substeps * TIMESTEP - task.period) > 1e-9:
            raise SettingsError(f"the control period has to be a multiple of {TIMESTEP} s, not {task.period} s")
        self._model = mujoco.MjModel.from_xml_string(document())
        threads = min(count, threads or _processors())
        self._data = [mujoco.MjData(self._model) for _ in range(threads)]
        self._rollout = Rollout(nthread=threads if threads > 1 else 0)
        self._motion = Motion(task.period)
        self._episodes = Episodes(task, count, torch.device("cpu"), seed)
        # The servos' controls: an angle and a speed per joint, alternating. The speed is taken at
        # the middle of a step; with it MuJoCo's integrator reaches the points of the parabola.
        starts = torch.arange(self._substeps) * TIMESTEP
        self._times, self._middles = starts[None, :, None], starts[None, :, None] + TIMESTEP / 2
        self._begin()

    def _begin(self) -> None:
        arms = self._episodes.state.arms
        self._angles, self._speeds = arms[:, ANGLES], arms[:, SPEEDS]
        self._physics = np.zeros((self.num_envs, 1 + 2 * JOINTS_COUNT))
        self._physics[:, 1:] = arms[:, ANGLES.start : SPEEDS.stop].numpy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin new episodes for all arms; with a seed, from its first episode.

        Returns:
            (N, 24) observations, and an empty dictionary.
        """
        self._episodes.restart(seed)
        self._begin()
        return self._episodes.observation().numpy(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Move all arms for a period. Violations are checked at every step of MuJoCo.

        Args:
            actions: (N, 6) real numbers.

        Raises:
            SettingsError: if `actions` are something else.
        """
        try:
            actions = np.asarray(actions)
        except TypeError as error:  # a tensor on a device, or of a dtype that numpy does not have
            raise SettingsError("actions have to be an array") from error
        if actions.dtype.kind not in "biuf":
            raise SettingsError(f"actions have to be real numbers, not {actions.dtype}")
        self.check_shape(actions.shape)
        actions = actions.astype(np.float32)
        invalid = torch.from_numpy(np.isnan(actions).any(-1))
        action = torch.from_numpy(np.clip(np.nan_to_num(actions, nan=0.0), -1.0, 1.0))
        angles, speeds = self._motion.advance(self._angles, self._speeds, action)
        path, _ = self._rollout.rollout(self._model, self._data, self._physics, self._controls(speeds))
        measured = torch.from_numpy(path[:, :, 1:]).float()
        violated = self._episodes.limits.beyond(measured[..., ANGLES], measured[..., SPEEDS]).any(1) | invalid
        moved = self._episodes.advance(measured[:, -1, ANGLES], measured[:, -1, SPEEDS], action)

        began, arms = moved.began[:, None], self._episodes.state.arms
        self._angles = torch.where(began, arms[:, ANGLES], angles)
        self._speeds = torch.where(began, arms[:, SPEEDS], speeds)
        self._physics = path[:, -1].copy()
        self._physics[moved.began.numpy(), 1:] = arms[moved.began, ANGLES.start : SPEEDS.stop].numpy()
        info = {
            "success": moved.terminated.numpy(),
            "distance": moved.distance.numpy(),
            "violations": violated.int().numpy(),
            "final_obs": moved.final_observation.numpy(),
            "_final_obs": moved.began.numpy(),
        }
        tensors = (moved.observation, moved.reward, moved.terminated, moved.truncated)
        observation, reward, terminated, truncated = (tensor.numpy() for tensor in tensors)
        return observation, reward, terminated, truncated, info

    def _controls(self, speeds: torch.Tensor) -> Array:
        """Return (N, steps, 12): the motion from the present angles and speeds to the speeds at the
        period's end.
        """
        angles, old = self._angles[:, None, :], self._speeds[:, None, :]
        acceleration = (speeds[:, None, :] - old) / self.task.period
        angle = angles + old * self._times + acceleration * self._times**2 / 2
        speed = old + acceleration * self._middles
        return torch.stack([angle, speed], dim=-1).flatten(2).double().numpy()

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self._rollout.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, from which a later run continues exactly."""
        own = (self._angles, self._speeds, torch.from_numpy(self._physics))
        names = ("angles", "speeds", "physics")
        return {"episodes": self._episodes.state_dict(), **{n: o.clone() for n, o in zip(names, own, strict=True)}}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a `state_dict`; raise CheckpointError if it does not fit these arms."""
        try:
            angles, speeds, physics = (saved[name].clone() for name in ("angles", "speeds", "physics"))
            episodes = saved["episodes"]
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError("the saved state is not of MuJoCo's arms") from error
        self._episodes.load_state_dict(episodes)
        self._angles, self._speeds, self._physics = angles, speeds, physics.numpy()
