"""PPO with simulator, rollout and update on the device: one graph and one read-back per
iteration.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dml_robot.learn import checkpoint, randomness
from dml_robot.learn.graphed import Graphed
from dml_robot.learn.network import ActorCritic
from dml_robot.learn.ppo import METRICS, Ppo, Rollout, act, rollout_of
from dml_robot.learn.settings import Settings
from dml_robot.learn.trainer import Metrics, per_episode
from dml_robot.policy import Policy
from dml_robot.sim import make


class DeviceTrainer:
    """The way "device"."""

    def __init__(self, settings: Settings) -> None:
        """Create the arms, the networks and the iteration."""
        self.steps = 0
        self._device = torch.device(settings.device)
        self._arms, self._horizon = settings.parallel or 1, settings.horizon or 1
        self._batches = batches_of(self._arms * self._horizon, settings.batch_size or 1)
        randomness.seed(self._device, settings.seed)
        self._env: Any = make(settings.sim, self._arms, self._device, settings.seed)
        features = self._env.single_observation_space.shape[0]
        self._joints = self._env.single_action_space.shape[0]
        network = ActorCritic(features, self._joints, settings.hidden)
        updates = -(-(settings.steps or 1) // (self._arms * self._horizon))
        self._ppo = Ppo(network, self._device, settings.learning_rate or 1e-3, updates)
        self._observation = self._env.reset(seed=settings.seed)[0].clone()
        # Random elapsed times: episodes that begin together would end together, and an iteration
        # would see only one part of them.
        elapsed = torch.randint(self._env.task.limit_periods, (self._arms,), dtype=torch.int32)
        self._env.state = self._env.state._replace(elapsed=elapsed.to(self._device))
        self._iteration = Graphed(self._iterate, self._device, settings.graphs)

    def iterate(self) -> Metrics:
        """Run one iteration; only its figures are read back from the device."""
        numbers = self._iteration().tolist()
        self.steps += self._arms * self._horizon
        return per_episode(dict(zip(METRICS, numbers, strict=True)))

    def policy(self) -> Policy:
        """Return the actor's mean, bounded."""
        return policy_of(self._ppo.network)

    def state_dict(self) -> dict[str, Any]:
        """Return the networks, the arms and the states of the generators."""
        return checkpoint.copied(
            {
                "ppo": self._ppo.state_dict(),
                "env": self._env.state_dict(),
                "observation": self._observation,
                "random": randomness.state(self._device),
                "steps": self.steps,
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; only before the first iteration, because a graph addresses its tensors
        in memory.
        """
        self._ppo.load_state_dict(state["ppo"])
        self._env.load_state_dict(state["env"])
        self._observation.copy_(state["observation"])
        randomness.restore(self._device, state["random"])
        self.steps = state["steps"]

    def close(self) -> None:
        """Stop the simulator."""
        self._env.close()

    def _iterate(self) -> Tensor:
        """Simulate the horizon and learn from it; the arms' state stays in the same tensors."""
        return self._ppo.update(self._collect(), self._batches)

    @torch.no_grad()
    def _collect(self) -> Rollout:
        begin, observation = self._env.state, self._observation
        network = self._ppo.network
        noise = torch.randn(self._horizon, self._arms, self._joints, device=self._device)
        offsets = noise * network.log_deviation.exp()
        frames = []
        for offset in offsets.unbind():
            frame, observation = act(self._env, observation, network.actor(observation) + offset)
            frames.append(frame)
        rollout = rollout_of(frames, network, noise)
        self._observation.copy_(observation)
        for kept, new in zip(begin, self._env.state, strict=True):
            kept.copy_(new)
        self._env.state = begin
        return rollout


def batches_of(steps: int, batch_size: int) -> int:
    """Return the number of batches of about `batch_size` that a rollout is divided into: a divisor
    of `steps`.
    """
    wanted = max(1, round(steps / batch_size))
    return next(number for number in range(wanted, 0, -1) if steps % number == 0)


def policy_of(network: ActorCritic) -> Policy:
    """Return the deterministic policy of a network."""
    return Policy([layer for layer in network.actor if isinstance(layer, torch.nn.Linear)], "elu", "clip")
