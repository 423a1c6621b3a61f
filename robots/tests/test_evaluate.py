"""Evaluation: its figures, for episodes with known results."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
import torch
from dml_robot.arm.description import JOINTS
from dml_robot.arm.kinematics import point
from dml_robot.arm.reach import poses
from dml_robot.errors import SettingsError
from dml_robot.evaluate import evaluate
from dml_robot.sim import make
from dml_robot.sim.episodes import POOL
from dml_robot.task import ANGLES, TARGET, Observer, ReachTask
from rich.console import Console
from torch import Tensor

SEED = 21


class Servo:
    """Drives to the angles that a seed's targets are made from, except for every third target."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(SEED)
        poses(POOL, generator, ReachTask().spread)
        self.goals = poses(POOL, generator)
        self.targets = point(self.goals)
        self.speed = torch.tensor([joint.speed for joint in JOINTS])

    def act(self, observation: Any) -> Any:
        seen = Observer().state(torch.as_tensor(observation))
        row = (self.targets[None] - seen[:, None, TARGET]).abs().sum(-1).argmin(-1)
        action = (4.0 * (self.goals[row] - seen[:, ANGLES]) / self.speed).clamp(-1, 1)
        action[row % 3 == 0] = 0
        return action if isinstance(observation, Tensor) else action.numpy()


@pytest.mark.parametrize("name", ["batched", "mujoco"])
def test_the_figures_are_those_of_the_episodes(name: str) -> None:
    arms = make(name, 8, seed=SEED)
    told: list[int] = []
    found = evaluate(arms, Servo(), 30, seed=SEED, progress=told.append)
    arms.close()
    assert found.episodes == 30 and told[-1] == 30
    # Rows 0 to 29 of the pool; it ignores 10 of them.
    assert 0.5 < found.success_rate <= 20 / 30
    assert found.violations == 0
    assert found.mean_time is not None and 0.2 < found.mean_time < ReachTask().time_limit
    assert found.mean_distance < found.p95_distance
    assert 0 < found.smoothness < 0.5
    assert json.loads(json.dumps(found.as_dict()))["episodes"] == 30
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(found.table())
    assert f"{100 * found.success_rate:.1f} %" in console.export_text()


class Still:
    """Does nothing."""

    def act(self, observation: Any) -> Any:
        return observation[:, :6] * 0


def test_both_simulators_give_the_same_figures() -> None:
    one, two = (evaluate(make(name, 4, seed=2), Still(), 10, seed=2) for name in ("batched", "mujoco"))
    assert one.success_rate == two.success_rate == 0 and one.mean_time is None
    assert one.smoothness == 0 and two.smoothness < 1e-3
    assert one.mean_distance == pytest.approx(two.mean_distance, abs=1e-4)
    assert one.mean_return == pytest.approx(two.mean_return, abs=1e-2)


class Broken(Still):
    """Returns NaN."""

    def act(self, observation: Any) -> Any:
        return super().act(observation) + np.nan


def test_actions_that_are_not_numbers_are_violations() -> None:
    task = ReachTask(time_limit=0.5)
    found = evaluate(make("batched", 4, task=task), Broken(), 4)
    assert found.violations == found.steps == 4 * task.limit_periods


@pytest.mark.parametrize("episodes", [0, -1, 2.5, True])
def test_episodes_are_a_number(episodes: Any) -> None:
    with pytest.raises(SettingsError, match="number of episodes must be a whole number"):
        evaluate(make("batched", 2), Still(), episodes)
