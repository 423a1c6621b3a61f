"""PPO that learns on the device from one rollout while the CPU's cores simulate the next.

A rollout uses the weights from before the update that runs at the same time. PPO's ratio is to the
policy that acted, so the result is correct, with one update of delay; and because neither side
depends on which finishes first, a run is reproducible.
"""

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from dml_robot.learn import checkpoint, randomness
from dml_robot.learn.graphed import Graphed
from dml_robot.learn.network import ActorCritic
from dml_robot.learn.ppo import METRICS, Ppo, Rollout, act, rollout_of
from dml_robot.learn.ppo_device import batches_of, policy_of
from dml_robot.learn.settings import Settings
from dml_robot.learn.trainer import Metrics, per_episode
from dml_robot.policy import Policy
from dml_robot.sim import make


class OverlappedTrainer:
    """The way "overlapped"."""

    def __init__(self, settings: Settings) -> None:
        """Create the arms on the CPU, the networks on the device, and a thread that simulates."""
        self.steps = 0
        self._device = torch.device(settings.device)
        self._arms, self._horizon = settings.parallel or 1, settings.horizon or 1
        self._batches = batches_of(self._arms * self._horizon, settings.batch_size or 1)
        randomness.seed(self._device, settings.seed)
        self._env: Any = make(settings.sim, self._arms, "cpu", settings.seed, as_torch="cpu")
        self._features = self._env.single_observation_space.shape[0]
        self._joints = self._env.single_action_space.shape[0]
        network = ActorCritic(self._features, self._joints, settings.hidden)
        # The simulating thread's copy of the actor; that thread must not draw from the generator
        # that the update draws from.
        self._acting = copy.deepcopy(network)
        self._noise = torch.Generator().manual_seed(settings.seed)
        self._observation: Tensor = self._env.reset(seed=settings.seed)[0]
        updates = -(-(settings.steps or 1) // (self._arms * self._horizon))
        self._ppo = Ppo(network, self._device, settings.learning_rate or 1e-3, updates)
        self._rollout: Rollout | None = None
        self._update = Graphed(self._learn, self._device, settings.graphs)
        self._thread = ThreadPoolExecutor(1, "simulation")
        self._pending: Future[Rollout] | None = None

    def iterate(self) -> Metrics:
        """Learn from the present rollout while the next one is simulated."""
        if self._pending is None:
            self._pending = self._thread.submit(self._collect)
        self._hold(self._pending.result())
        self._pending = self._thread.submit(self._collect)
        # Figures and weights are read back together.
        found = self._update().cpu()
        self.steps += self._arms * self._horizon
        numbers, weights = found[: len(METRICS)].tolist(), found[len(METRICS) :]
        self._pending.result()
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(weights, self._acting.parameters())
        return per_episode(dict(zip(METRICS, numbers, strict=True)))

    def policy(self) -> Policy:
        """Return the actor's mean, bounded."""
        return policy_of(self._ppo.network)

    def state_dict(self) -> dict[str, Any]:
        """Return the networks, the arms, the rollout not yet learnt from, and the generators'
        states.
        """
        return checkpoint.copied(
            {
                "ppo": self._ppo.state_dict(),
                "acting": self._acting.state_dict(),
                "rollout": self._pending and self._pending.result(),
                "env": self._env.state_dict(),
                "observation": self._observation,
                "noise": self._noise.get_state(),
                "random": randomness.state(self._device),
                "steps": self.steps,
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; only before the first iteration."""
        self._ppo.load_state_dict(state["ppo"])
        self._acting.load_state_dict(state["acting"])
        self._env.load_state_dict(state["env"])
        self._observation = state["observation"]
        self._noise.set_state(state["noise"])
        randomness.restore(self._device, state["random"])
        self.steps = state["steps"]
        if state["rollout"] is not None:
            self._pending = Future()
            self._pending.set_result(Rollout(*state["rollout"]))

    def close(self) -> None:
        """Stop the thread and the simulator."""
        self._thread.shutdown(cancel_futures=True)
        self._env.close()

    def _hold(self, rollout: Rollout) -> None:
        """Copy a rollout to the device, into the tensors that the update reads."""
        if self._rollout is None:
            self._rollout = Rollout(*(part.to(self._device, copy=True) for part in rollout))
        else:
            for kept, new in zip(self._rollout, rollout, strict=True):
                kept.copy_(new, non_blocking=True)

    def _learn(self) -> Tensor:
        assert self._rollout is not None
        numbers = self._ppo.update(self._rollout, self._batches)
        weights = torch.nn.utils.parameters_to_vector(self._ppo.network.parameters())
        return torch.cat((numbers, weights.detach()))

    @torch.no_grad()
    def _collect(self) -> Rollout:
        observation, network = self._observation, self._acting
        noise = torch.randn(self._horizon, self._arms, self._joints, generator=self._noise)
        offsets = noise * network.log_deviation.exp()
        frames = []
        for offset in offsets.unbind():
            frame, observation = act(self._env, observation, network.actor(observation) + offset)
            frames.append(frame)
        self._observation = observation
        return rollout_of(frames, network, noise)
