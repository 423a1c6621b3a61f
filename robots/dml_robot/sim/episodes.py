"""The episodes of many arms, shared by both simulators: initial states, observations, rewards and
ends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import checks
from ..arm.kinematics import point
from ..arm.motion import Limits
from ..arm.reach import poses
from ..errors import CheckpointError
from ..task import ANGLES, LAST_ACTION, OBSERVATION_SIZE, TARGET, TOOL, Observer, ReachTask

POOL = 1 << 14
"""Number of pairs of a first pose and a target per seed. Episodes use them in turn: a step draws no random numbers."""


class EpisodeState(NamedTuple):
    """The state of N arms that changes from step to step."""

    arms: Tensor
    """(N, 24) float32, laid out as an observation, in radians, radians per second and metres."""
    elapsed: Tensor
    """(N,) int32, periods since the episode began."""
    held: Tensor
    """(N,) int32, number of consecutive periods that ended with the tool at the target."""
    row: Tensor
    """(N,) int32, index of the pair in the pool that the episode began with."""


class Transition(NamedTuple):
    """The results of a step for N arms."""

    observation: Tensor
    """(N, 24) float32; of a new episode where the old one ended."""
    reward: Tensor
    """(N,) float32."""
    terminated: Tensor
    """(N,) bool."""
    truncated: Tensor
    """(N,) bool."""
    final_observation: Tensor
    """(N, 24) float32, before any new episode began."""
    distance: Tensor
    """(N,) float32 metres between tool and target, before any new episode began."""
    began: Tensor
    """(N,) bool, where an episode ended and a new one began."""


@lru_cache(maxsize=4)
def _pool(seed: int, spread: float) -> Tensor:
    """Return (POOL, 24) initial states of a seed's episodes, on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    starts, targets = poses(POOL, generator, spread), point(poses(POOL, generator))
    pool = torch.zeros(POOL, OBSERVATION_SIZE)
    pool[:, ANGLES], pool[:, TOOL], pool[:, TARGET] = starts, point(starts), targets
    return pool


class Episodes:
    """Episodes of `count` arms on a device. `advance` neither waits for the device nor draws random
    numbers.

    Args:
        task: the arms' task.
        count: number of arms.
        device: of the tensors.
        seed: of first poses and targets; equal seeds give equal episodes on every device and in
            every simulator.
    """

    def __init__(self, task: ReachTask, count: int, device: torch.device, seed: int) -> None:
        """Begin the first episodes."""
        self.task, self.count, self.device = task, count, device
        self.limits = Limits(device)
        self._observer = Observer(device)
        self.restart(seed)

    def restart(self, seed: int | None = None) -> None:
        """Begin a new episode for every arm: with the pool's next pairs, or with the first pairs of
        a new seed.
        """
        if seed is None:
            row = (self.state.row + self.count) % POOL
        else:
            self._draw(checks.whole("the seed", seed, 0, checks.MAX_SEED))
            row = torch.arange(self.count, dtype=torch.int32, device=self.device) % POOL
        zeros = torch.zeros(self.count, dtype=torch.int32, device=self.device)
        self.state = EpisodeState(self._pool.index_select(0, row), zeros, zeros.clone(), row)

    def _draw(self, seed: int) -> None:
        self._pool, self._seed = _pool(seed, self.task.spread).to(self.device), seed

    def observation(self) -> Tensor:
        """Return (N, 24) observations of the present state."""
        return self._observer.observe(self.state.arms)

    def advance(self, angles: Tensor, speeds: Tensor, action: Tensor) -> Transition:
        """Record the arms' state after a period, and begin new episodes where old ones ended.

        Args:
            angles: (N, 6) radians.
            speeds: (N, 6) radians per second.
            action: (N, 6) as applied.
        """
        task, old = self.task, self.state
        tool, target = point(angles), old.arms[:, TARGET]
        before = (old.arms[:, TOOL] - target).norm(dim=-1)
        distance = (tool - target).norm(dim=-1)
        elapsed = old.elapsed + 1
        held = (old.held + 1) * (distance < task.tolerance)
        # Holding for n periods has n + 1 ends of periods at the target, including the first.
        success = held > task.hold_periods
        truncated = (elapsed >= task.limit_periods) & ~success
        reward = task.reward(before, distance, action, old.arms[:, LAST_ACTION], success)
        moved = torch.cat([angles, speeds, tool, target, action], dim=-1)

        began = success | truncated
        row = torch.where(began, (old.row + self.count) % POOL, old.row)
        arms = torch.where(began[:, None], self._pool.index_select(0, row), moved)
        going_on = ~began
        self.state = EpisodeState(arms, elapsed * going_on, held * going_on, row)
        return Transition(
            self.observation(), reward, success, truncated, self._observer.observe(moved), distance, began
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, from which a later run continues exactly, on the CPU."""
        return {
            "seed": self._seed,
            **{name: value.detach().cpu().clone() for name, value in self.state._asdict().items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from a `state_dict`; raise CheckpointError if it is of other arms."""
        try:
            seed = checks.whole("the seed", saved["seed"], 0, checks.MAX_SEED)
            state = EpisodeState(*(torch.as_tensor(saved[name]) for name in EpisodeState._fields))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError("the saved state of the arms is damaged") from error
        for name, value, present in zip(EpisodeState._fields, state, self.state, strict=True):
            if value.shape != present.shape or value.dtype != present.dtype:
                raise CheckpointError(f"the saved state is of other arms: {name} has shape {tuple(value.shape)}")
        self._draw(seed)
        self.state = EpisodeState(*(value.to(self.device) for value in state))
