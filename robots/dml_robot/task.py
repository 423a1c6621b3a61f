"""The task: bring the tool to a random reachable target, and hold it there.

Observation, 24 floats:

| from | to | what |
|---|---|---|
| 0 | 6 | joint angles, scaled so that the limits are -1 and 1 |
| 6 | 12 | joint speeds, as fractions of each joint's highest |
| 12 | 15 | position of the tool relative to the middle of the workspace, in units of 0.2 m |
| 15 | 18 | position of the target, likewise |
| 18 | 24 | the last action, as applied |

Action, 6 floats: the speed to reach for each joint, as a fraction of its highest, clipped to -1 and
1; NaN stops the joint (and counts as a violation).

Success: the tool has been within 2 cm of the target for 0.2 s without a break. It ends the episode
(`terminated`); so does the time limit (`truncated`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .arm.description import JOINTS, JOINTS_COUNT
from .errors import SettingsError

OBSERVATION_SIZE = 24
ACTION_SIZE = JOINTS_COUNT

ANGLES = slice(0, 6)
SPEEDS = slice(6, 12)
TOOL = slice(12, 15)
TARGET = slice(15, 18)
LAST_ACTION = slice(18, 24)

MIDDLE = (0.0, 0.0, 0.5)
"""The middle of the workspace in the base's frame (metres)."""

LENGTH_UNIT = 0.2
"""Metres. With the workspace 1.5 m wide, a policy sees centimetres better, and learns faster at first."""


@dataclass(frozen=True)
class ReachTask:
    """The parameters of the task.

    Args:
        period: seconds between two actions.
        tolerance: maximum distance in metres between tool and target for success.
        hold: seconds for which the tool has to stay within it.
        time_limit: seconds after which an episode is truncated.
        spread: the fraction of the joints' ranges around the home pose in which episodes begin.
        reach_weight: reward per metre that the tool came nearer.
        near_weight: reward per second at the target, elsewhere times `1 / (1 + (distance / near_scale)^2)`.
        near_scale: metres.
        time_weight: cost per second, so that sooner is better.
        change_weight: cost of a change of the action, per squared unit.
        success_weight: reward of success.
    """

    period: float = 0.05
    tolerance: float = 0.02
    hold: float = 0.2
    time_limit: float = 3.0
    spread: float = 0.3
    reach_weight: float = 5.0
    near_weight: float = 5.0
    near_scale: float = 0.03
    time_weight: float = 2.5
    change_weight: float = 0.002
    success_weight: float = 5.0

    def __post_init__(self) -> None:
        """Raise SettingsError for invalid parameters."""
        for name in ("period", "tolerance", "hold", "time_limit", "near_scale"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"the task's {name} must be above 0, not {value!r}")
        if not 0 <= self.spread <= 1:
            raise SettingsError(f"the task's spread must be from 0 to 1, not {self.spread!r}")
        if min(self.hold_periods, self.limit_periods) < 1:
            raise SettingsError(f"the task's hold and time limit must be at least its period, {self.period} s")

    @property
    def hold_periods(self) -> int:
        """Number of periods at whose beginning and end the tool has to be at the target."""
        return round(self.hold / self.period)

    @property
    def limit_periods(self) -> int:
        """Number of periods of the longest episode."""
        return round(self.time_limit / self.period)

    def reward(self, before: Tensor, distance: Tensor, action: Tensor, last: Tensor, success: Tensor) -> Tensor:
        """Return the (N,) reward of a period.

        Args:
            before: (N,) distance of tool and target at its beginning, metres.
            distance: (N,) at its end.
            action: (N, 6) applied in it.
            last: (N, 6) applied before.
            success: (N,) bool, whether the period completed the task.
        """
        near = (distance.square() / self.near_scale**2 + 1).reciprocal()
        reward = torch.sub(before, distance).mul(self.reach_weight).sub(self.time_weight * self.period)
        reward = torch.add(reward, near, alpha=self.near_weight * self.period)
        reward = torch.sub(reward, (action - last).square().sum(-1), alpha=self.change_weight)
        return torch.add(reward, success, alpha=self.success_weight)


class Observer:
    """Converts states of arms to observations and back.

    Both are (N, 24), with the same layout. A state has radians, radians per second, and metres in
    the base's frame.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        """Uploads the scales."""
        scale, shift = torch.ones(OBSERVATION_SIZE), torch.zeros(OBSERVATION_SIZE)
        for index, joint in enumerate(JOINTS):
            scale[index] = 2 / (joint.upper - joint.lower)
            shift[index] = -(joint.upper + joint.lower) / (joint.upper - joint.lower)
            scale[SPEEDS.start + index] = 1 / joint.speed
        for where in (TOOL, TARGET):
            scale[where], shift[where] = 1 / LENGTH_UNIT, -torch.tensor(MIDDLE) / LENGTH_UNIT
        self._scale, self._shift = scale.to(device), shift.to(device)

    def observe(self, state: Tensor) -> Tensor:
        """Return (N, 24) observations of (N, 24) states."""
        return torch.addcmul(self._shift, state, self._scale)

    def state(self, observation: Tensor) -> Tensor:
        """Return the (N, 24) states of observations."""
        return (observation - self._shift) / self._scale
