"""Settings of a training run: checked once, stored in its checkpoints."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from dml_robot.errors import SettingsError

ALGORITHMS = ("ppo", "sac", "td3")
SIMULATORS = ("mujoco", "batched")
WAYS = ("sb3", "device", "overlapped")


@dataclass(frozen=True)
class Settings:
    """The settings of a training run.

    `way` is the way of training: "sb3" is Stable-Baselines3, "device" simulates and learns on the
    device, "overlapped" simulates on the CPU's cores while the device learns. "auto" is "device"
    for
    PPO on the batched simulator, "overlapped" for PPO on MuJoCo, and "sb3" for the other
    algorithms.
    None stands for the way's default (`defaults`).
    """

    algorithm: str = "ppo"
    sim: str = "batched"
    way: str = "auto"
    device: str = "cpu"
    parallel: int | None = None
    """Number of arms simulated in parallel."""
    steps: int | None = None
    """Total number of control steps of single arms in the run."""
    seed: int = 0
    learning_rate: float | None = None
    batch_size: int | None = None
    """Number of steps in the batch of one gradient."""
    horizon: int | None = None
    """PPO: number of steps of each arm in an iteration."""
    hidden: tuple[int, ...] = field(default=(64, 64))
    """The widths of the networks' hidden layers."""
    graphs: bool = True
    """Whether an iteration is captured as a graph on devices that support it (dml, CUDA)."""

    def checked(self) -> Settings:
        """Return these settings with all defaults filled in; raise SettingsError if they are
        invalid.
        """
        _one_of("algorithm", self.algorithm, ALGORITHMS)
        _one_of("simulator", self.sim, SIMULATORS)
        _one_of("way", self.way, ("auto", *WAYS))
        way = self.way
        if way == "auto":
            way = "sb3" if self.algorithm != "ppo" else "device" if self.sim == "batched" else "overlapped"
        if way != "sb3" and self.algorithm != "ppo":
            raise SettingsError(f"the way '{way}' has PPO alone; {self.algorithm} is to be had with the way 'sb3'")
        if way == "device" and self.sim != "batched":
            raise SettingsError("the way 'device' simulates on the device: it needs the batched simulator")
        chosen = {name: value for name, value in defaults(way, self.algorithm).items() if getattr(self, name) is None}
        settings = dataclasses.replace(self, way=way, **chosen)
        for name in ("parallel", "steps", "batch_size", "horizon"):
            if getattr(settings, name) < 1:
                raise SettingsError(f"expected at least 1 for {name}, but got {getattr(settings, name)}")
        if not 0 < settings.learning_rate < 1:  # type: ignore[operator]
            raise SettingsError(f"expected a learning rate between 0 and 1, but got {settings.learning_rate}")
        if not 0 <= settings.seed < 2**63:
            raise SettingsError(f"expected a seed from 0 to 2**63 - 1, but got {settings.seed}")
        if not settings.hidden or min(settings.hidden) < 1:
            raise SettingsError(f"expected widths of hidden layers, but got {settings.hidden}")
        return settings

    def state_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for a checkpoint."""
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}

    @staticmethod
    def of(state: dict[str, Any]) -> Settings:
        """Return the settings of a `state_dict`."""
        return Settings(**{**state, "hidden": tuple(state["hidden"])})


def defaults(way: str, algorithm: str) -> dict[str, Any]:
    """Return a way's defaults: values by the names of `Settings`."""
    if way == "device":
        return {"parallel": 512, "steps": 6_000_000, "learning_rate": 1e-3, "batch_size": 2048, "horizon": 16}
    if way == "overlapped":
        return {"parallel": 256, "steps": 6_000_000, "learning_rate": 1e-3, "batch_size": 1024, "horizon": 16}
    if algorithm == "ppo":
        return {"parallel": 8, "steps": 3_000_000, "learning_rate": 3e-4, "batch_size": 256, "horizon": 256}
    return {"parallel": 8, "steps": 500_000, "learning_rate": 1e-3, "batch_size": 256, "horizon": 1}


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"unknown {what} '{value}': it is one of {', '.join(choices)}")
