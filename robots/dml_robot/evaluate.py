"""Evaluation of a policy over a number of episodes, in either simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from torch import Tensor

from .arm.description import TIME_TO_FULL_SPEED
from .checks import whole
from .sim.arms import Arms
from .task import SPEEDS


class Actor(Protocol):
    """An object to evaluate: observations in, actions out, both tensors or both arrays."""

    def act(self, observation: Any) -> Any:
        """Return (N, 6) actions of (N, 24) observations."""


@dataclass(frozen=True)
class Evaluation:
    """Figures of an evaluation.

    Args:
        episodes: number of episodes.
        success_rate: fraction of episodes in which the tool reached the target and stayed, 0 to 1.
        mean_distance: mean distance between tool and target at the episodes' ends, metres.
        p95_distance: its 95th percentile.
        mean_time: mean time until success in seconds, holding included, of successful episodes;
            None if none succeeded.
        p95_time: its 95th percentile.
        violations: periods in which an arm was beyond a limit, or an action was NaN.
        smoothness: mean change of a joint's speed in a period, as a fraction of its acceleration
            limit: 0 is constant speed, 1 is full acceleration all the time.
        mean_return: mean over episodes of the sum of rewards.
        steps: number of actions in all episodes.
    """

    episodes: int
    success_rate: float
    mean_distance: float
    p95_distance: float
    mean_time: float | None
    p95_time: float | None
    violations: int
    smoothness: float
    mean_return: float
    steps: int

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the figures by name, ready for JSON."""
        return asdict(self)

    def table(self) -> Table:
        """Return the figures as a table for display."""

        def seconds(value: float | None) -> str:
            return "-" if value is None else f"{value:.2f} s"

        table = Table(title=f"{self.episodes} episodes")
        table.add_column("figure")
        table.add_column("value", justify="right")
        table.add_row("success", f"{100 * self.success_rate:.1f} %")
        table.add_row("distance, mean", f"{1000 * self.mean_distance:.1f} mm")
        table.add_row("distance, 95th percentile", f"{1000 * self.p95_distance:.1f} mm")
        table.add_row("time to reach, mean", seconds(self.mean_time))
        table.add_row("time to reach, 95th percentile", seconds(self.p95_time))
        table.add_row("limit violations", str(self.violations))
        table.add_row("smoothness (0 best, 1 worst)", f"{self.smoothness:.3f}")
        table.add_row("return, mean", f"{self.mean_return:.2f}")
        return table


def evaluate(
    env: Arms,
    policy: Actor,
    episodes: int,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run episodes and return their figures.

    Every arm runs the same number of episodes, and later ones are not counted: counting the first
    episodes to end would favour quick ones.

    Args:
        env: a simulator of `make`.
        policy: the policy to evaluate.
        episodes: number of episodes.
        seed: of the episodes; the simulator's next episodes if None.
        progress: called now and then with the number of ended episodes.

    Raises:
        SettingsError: if `episodes` is less than 1.
    """
    episodes = whole("the number of episodes", episodes, 1)
    task, arms = env.task, env.num_envs
    left = np.full(arms, episodes // arms) + (np.arange(arms) < episodes % arms)
    elapsed, returned = np.zeros(arms, np.int64), np.zeros(arms)
    distances: list[NDArray[Any]] = []
    times: list[NDArray[Any]] = []
    returns: list[NDArray[Any]] = []
    violations = steps = 0
    changed = 0.0
    observation, _ = env.reset(seed=seed)
    while (counted := left > 0).any():
        action = policy.act(observation)
        before = _host(observation)[:, SPEEDS]
        observation, reward, terminated, truncated, info = env.step(action)
        change = np.abs(_host(info["final_obs"])[:, SPEEDS] - before).mean(-1)
        changed += float(change[counted].sum(dtype=np.float64))
        violations += int(_host(info["violations"])[counted].sum())
        steps += int(counted.sum())
        elapsed += 1
        returned += _host(reward)
        success = _host(terminated)
        ended = success | _host(truncated)
        distances.append(_host(info["distance"])[ended & counted])
        times.append(elapsed[success & counted] * task.period)
        returns.append(returned[ended & counted])
        left -= ended & counted
        elapsed[ended], returned[ended] = 0, 0.0
        if progress is not None:
            progress(episodes - int(left.sum()))
    distance, time = np.concatenate(distances), np.concatenate(times)
    most = task.period / TIME_TO_FULL_SPEED
    return Evaluation(
        episodes=episodes,
        success_rate=len(time) / episodes,
        mean_distance=float(distance.mean()),
        p95_distance=float(np.percentile(distance, 95)),
        mean_time=float(time.mean()) if len(time) else None,
        p95_time=float(np.percentile(time, 95)) if len(time) else None,
        violations=violations,
        smoothness=changed / steps / most,
        mean_return=float(np.concatenate(returns).mean()),
        steps=steps,
    )


def _host(values: Any) -> NDArray[Any]:
    """Return the values as an array, read back if they are a tensor of a device."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
