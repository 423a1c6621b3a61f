"""Stable-Baselines3's PPO, SAC and TD3 on either simulator, an iteration at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from dml_robot.learn import checkpoint, ppo, randomness
from dml_robot.learn.settings import Settings
from dml_robot.learn.trainer import Metrics, per_episode
from dml_robot.policy import Policy
from dml_robot.sim import make

_log = logging.getLogger(__name__)

REPLAY = 200_000
"""Capacity in steps of SAC's and TD3's replay buffer: nearly all steps of a short run, and 47 MB."""
LEARNING_STARTS = 2_000
OFF_POLICY_STEPS = 1_024
"""Number of control steps in an iteration of SAC and TD3."""


class Sb3Trainer:
    """The way "sb3"."""

    def __init__(self, settings: Settings) -> None:
        """Create the arms, and the algorithm on the device."""
        self._device = torch.device(settings.device)
        randomness.seed(self._device, settings.seed)
        np.random.seed(settings.seed % 2**32)  # the replay buffer draws from this generator
        # If the arms are simulated on the device, only their figures are transferred.
        place = self._device if settings.sim == "batched" else torch.device("cpu")
        self._env = _Arms(make(settings.sim, settings.parallel or 1, place, settings.seed, as_torch=place), place)
        self._env.action_space.seed(settings.seed)  # SAC's and TD3's first actions are drawn from it
        self._sums = _Sums()
        self._on_policy = settings.algorithm == "ppo"
        network = {"net_arch": list(settings.hidden), "activation_fn": nn.ELU if self._on_policy else nn.ReLU}
        common: dict[str, Any] = {
            "policy": "MlpPolicy",
            "env": self._env,
            "device": self._device,
            "policy_kwargs": network,
            "learning_rate": settings.learning_rate,
            "batch_size": settings.batch_size,
            "gamma": ppo.DISCOUNT,
            "verbose": 0,
        }
        arms = settings.parallel or 1
        if self._on_policy:
            self._model: Any = PPO(**common, n_steps=settings.horizon, n_epochs=10)
            self._chunk = arms * (settings.horizon or 1)
        else:
            # The algorithms' default is one gradient per step of each arm; a quarter as many learn
            # as much in less time.
            off = {
                "buffer_size": REPLAY,
                "learning_starts": LEARNING_STARTS,
                "train_freq": 1,
                "gradient_steps": max(1, arms // 4),
            }
            if settings.algorithm == "sac":
                self._model = SAC(**common, **off)
            else:
                joints = self._env.action_space.shape[0]
                noise = NormalActionNoise(np.zeros(joints), np.full(joints, 0.2))
                self._model = TD3(**common, **off, action_noise=noise)
            self._chunk = OFF_POLICY_STEPS
        self._model.set_logger(Logger(folder=None, output_formats=[]))

    @property
    def steps(self) -> int:
        """Control steps so far."""
        return int(self._model.num_timesteps)

    def iterate(self) -> Metrics:
        """Let the algorithm simulate and learn for a while."""
        self._sums.clear()
        self._model.learn(self._chunk, callback=self._sums, reset_num_timesteps=False)
        logged = self._model.logger.name_to_value
        found = per_episode(self._sums.metrics())
        found.update({name.removeprefix("train/"): float(value) for name, value in logged.items() if "train/" in name})
        self._model.logger.name_to_value.clear()
        return found

    def policy(self) -> Policy:
        """Return the deterministic policy, bounded as the algorithm bounds it."""
        policy = self._model.policy
        if self._on_policy:
            return Policy([*_linear(policy.mlp_extractor.policy_net), policy.action_net], "elu", "clip")
        if isinstance(self._model, SAC):
            return Policy([*_linear(policy.actor.latent_pi), policy.actor.mu], "relu", "tanh")
        return Policy(_linear(policy.actor.mu), "relu", "tanh")

    def state_dict(self) -> dict[str, Any]:
        """Return the networks, their optimizers, the replay buffer, the arms and the generators'
        states.
        """
        model = self._model
        return checkpoint.copied(
            {
                "parameters": model.get_parameters(),
                "variables": {name: variable for name, variable in self._variables()},
                "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
                "observation": model._last_obs,
                "starts": model._last_episode_starts,
                "replay": None if self._on_policy else self._replay(),
                "env": self._env.arms.state_dict(),
                "random": randomness.state(self._device),
                "numpy": np.random.get_state(legacy=False),
                "actions": self._env.action_space.np_random.bit_generator.state,
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        model = self._model
        model.set_parameters(state["parameters"], device=self._device)
        with torch.no_grad():
            for name, variable in self._variables():
                variable.copy_(state["variables"][name])
        for name, value in state["counters"].items():
            setattr(model, name, value)
        model._last_obs, model._last_episode_starts = state["observation"], state["starts"]
        if state["replay"] is not None:
            self._restore_replay(state["replay"])
        self._env.arms.load_state_dict(state["env"])
        randomness.restore(self._device, state["random"])
        np.random.set_state(state["numpy"])
        self._env.action_space.np_random.bit_generator.state = state["actions"]

    def close(self) -> None:
        """Stop the simulator."""
        self._env.close()

    def _variables(self) -> list[tuple[str, torch.Tensor]]:
        """Return learnt variables that are not parameters: the logarithm of SAC's entropy
        coefficient.
        """
        found = getattr(self._model, "log_ent_coef", None)
        return [] if found is None else [("log_ent_coef", found)]

    def _replay(self) -> dict[str, Any]:
        buffer = self._model.replay_buffer
        filled = buffer.buffer_size if buffer.full else buffer.pos
        arrays = {name: getattr(buffer, name)[:filled] for name in _REPLAYED}
        return {"arrays": arrays, "position": buffer.pos, "full": buffer.full}

    def _restore_replay(self, state: dict[str, Any]) -> None:
        buffer = self._model.replay_buffer
        for name, array in state["arrays"].items():
            getattr(buffer, name)[: len(array)] = array
        buffer.pos, buffer.full = state["position"], state["full"]


_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_total_timesteps", "_num_timesteps_at_start")
_REPLAYED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class _Arms(VecEnv):
    """Adapts a simulator of this package to Stable-Baselines3: arrays, and a dictionary for each
    arm.
    """

    def __init__(self, arms: Any, device: torch.device) -> None:
        self.arms, self._device = arms, device
        super().__init__(arms.num_envs, arms.single_observation_space, arms.single_action_space)
        self._actions = torch.zeros(0)

    def reset(self) -> np.ndarray:
        observation, _ = self.arms.reset()
        return observation.cpu().numpy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = torch.as_tensor(np.asarray(actions, np.float32), device=self._device)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.arms.step(self._actions)
        rows = zip(
            info["final_obs"].cpu().numpy(),
            terminated.tolist(),
            truncated.tolist(),
            info["success"].tolist(),
            info["distance"].tolist(),
            info["violations"].tolist(),
            strict=True,
        )
        infos = []
        for final, ended, cut, success, distance, violations in rows:
            each: dict[str, Any] = {"success": success, "distance": distance, "violations": violations}
            if ended or cut:
                each |= {"terminal_observation": final, "TimeLimit.truncated": cut and not ended}
            infos.append(each)
        return observation.cpu().numpy(), reward.cpu().numpy(), (terminated | truncated).cpu().numpy(), infos

    def close(self) -> None:
        self.arms.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.arms, attr_name)] * self.arms.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("the arms are set up when they are made")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **named: Any) -> list[Any]:
        raise NotImplementedError("the arms have no methods of one alone")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class _Sums(BaseCallback):
    """Sums the figures of an iteration's steps."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._count, self._reward, self._violations = 0, 0.0, 0.0
        self._episodes, self._successes, self._distances = 0, 0, 0.0

    def metrics(self) -> Metrics:
        return {
            "reward": self._reward / max(1, self._count),
            "episodes": self._episodes,
            "successes": self._successes,
            "distances": self._distances,
            "violations": self._violations,
        }

    def _on_step(self) -> bool:
        self._count += len(self.locals["rewards"])
        self._reward += float(self.locals["rewards"].sum())
        for info in self.locals["infos"]:
            self._violations += info["violations"]
            if "terminal_observation" in info:
                self._episodes += 1
                self._successes += info["success"]
                self._distances += info["distance"]
        return True


def _linear(layers: Sequence[nn.Module]) -> list[nn.Linear]:
    return [layer for layer in layers if isinstance(layer, nn.Linear)]
