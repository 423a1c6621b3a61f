"""Proximal policy optimisation (Schulman et al., arXiv 1707.06347) without waiting for the device.

Neither the learning rate, which falls to zero over the run, nor the losses are read by the host, so
an update can be captured as a graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dml_robot.learn.network import ActorCritic

DISCOUNT = 0.9
"""The discount per step: the reward is for progress, so rewards seconds later depend little on an action."""
TRACE = 0.95
"""The lambda of generalised advantage estimation (arXiv 1506.02438)."""
CLIP = 0.2
EPOCHS = 4
VALUE_WEIGHT = 0.5
MAX_GRADIENT = 1.0


class Rollout(NamedTuple):
    """T steps of N arms; float32; the first two dimensions are (T, N)."""

    observation: Tensor
    """(T, N, features): the policy's input."""
    action: Tensor
    """(T, N, joints), before clipping."""
    log_probability: Tensor
    """(T, N): the actions' log density in the policy that drew them."""
    reward: Tensor
    final: Tensor
    """(T, N, features): the observation after the step, before a new episode begins."""
    terminated: Tensor
    """1 where the episode terminated, so that no reward follows."""
    ended: Tensor
    """1 where the episode ended: terminated or truncated."""
    success: Tensor
    """1 where the target counts as reached."""
    distance: Tensor
    """Metres from the tool to the target."""
    violations: Tensor
    """Number of violated limits."""


class Frame(NamedTuple):
    """One step of N arms; `Rollout` has T of them."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    final: Tensor
    terminated: Tensor
    ended: Tensor
    success: Tensor
    distance: Tensor
    violations: Tensor


METRICS = ("reward", "episodes", "successes", "distances", "violations", "divergence", "value_loss", "learning_rate")
"""Names of an update's figures: `reward` is the mean per step, `distances` the sum over ended episodes."""


def advantages(reward: Tensor, value: Tensor, after: Tensor, terminated: Tensor, ended: Tensor) -> Tensor:
    """Return generalised advantage estimates, (T, N), of values before (`value`) and after each
    step.
    """
    delta = reward + DISCOUNT * after * (1 - terminated) - value
    decay = DISCOUNT * TRACE * (1 - ended)
    later = torch.zeros_like(delta[0])
    found = []
    for now, keep in zip(reversed(delta.unbind()), reversed(decay.unbind()), strict=True):
        later = torch.addcmul(now, keep, later)
        found.append(later)
    return torch.stack(found[::-1])


class Ppo:
    """A network, its optimizer, and the update."""

    def __init__(self, network: ActorCritic, device: torch.device, learning_rate: float, updates: int) -> None:
        """Move the network to the device; the learning rate starts at `learning_rate` and falls to
        zero over `updates` updates.
        """
        self.network = network.to(device)
        self._parameters = list(self.network.parameters())
        self._highest, self._updates = learning_rate, updates
        self._done = torch.zeros((), device=device)
        self._learning_rate = torch.tensor(learning_rate, device=device)
        # One kernel for all parameters; the rate is a tensor, so that a graph's replay sees its
        # changes.
        self._optimizer = torch.optim.Adam(
            self._parameters, lr=self._learning_rate, eps=1e-5, fused=True, capturable=device.type != "cpu"
        )

    def update(self, rollout: Rollout, batches: int) -> Tensor:
        """Learn from a rollout in `EPOCHS` epochs of `batches` gradient steps; return `METRICS` as
        a tensor on the device.

        `batches` divides the number of steps in the rollout.
        """
        with torch.no_grad():
            left = 1 - self._done / self._updates
            self._learning_rate.copy_(self._highest * left.clamp(min=0))
            self._done += 1
        packed = self._pack(rollout)
        # The same permutation for all epochs: with thousands of arms another one gains nothing.
        order = torch.randperm(packed.shape[0], device=packed.device)
        parts = packed.index_select(0, order).chunk(batches)
        features, joints = rollout.observation.shape[-1], rollout.action.shape[-1]
        for _ in range(EPOCHS):
            for part in parts:
                divergence, value_loss = self._step(part.split((features, joints, 1, 1, 1), -1))
        ended = rollout.ended
        return torch.stack(
            (
                rollout.reward.mean(),
                ended.sum(),
                (rollout.success * ended).sum(),
                (rollout.distance * ended).sum(),
                rollout.violations.sum(),
                divergence,
                value_loss,
                self._learning_rate,
            )
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state that training changes; the tensors are shared, not copied."""
        optimizer = self._optimizer.state_dict()
        return {"network": self.network.state_dict(), "optimizer": optimizer, "done": self._done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy a state of `state_dict` into the existing tensors, with which a graph may have been
        captured.
        """
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        (group,) = self._optimizer.param_groups
        group["lr"] = self._learning_rate
        self._done.copy_(state["done"])

    @torch.no_grad()
    def _pack(self, rollout: Rollout) -> Tensor:
        """Return the training data, one row per step: observation, action, log density, advantage,
        return.
        """
        value, after = self.network.value(torch.stack((rollout.observation, rollout.final))).unbind()
        gain = advantages(rollout.reward, value, after, rollout.terminated, rollout.ended)
        target = gain + value
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        columns = (rollout.log_probability, gain, target)
        rows = torch.cat((rollout.observation, rollout.action, torch.stack(columns, -1)), -1)
        return rows.flatten(0, 1)

    def _step(self, columns: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Do one gradient step; return the divergence from the policy that acted, and the value
        loss.
        """
        observation, action, before, gain, target = columns
        network = self.network
        change = network.log_probability(network.actor(observation), action) - before.squeeze(-1)
        ratio, gain = change.exp(), gain.squeeze(-1)
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        value_loss = (network.value(observation) - target.squeeze(-1)).square().mean()
        loss = VALUE_WEIGHT * value_loss - surrogate
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, MAX_GRADIENT)
        self._optimizer.step()
        with torch.no_grad():
            # An estimate that is never negative (http://joschu.net/blog/kl-approx.html).
            divergence = (ratio - 1 - change).mean()
        return divergence, value_loss.detach()


def act(env: Any, observation: Tensor, action: Tensor) -> tuple[Frame, Tensor]:
    """Step all arms of a simulator; return the step and the next observation."""
    after, reward, terminated, truncated, info = env.step(action.clamp(-1, 1))
    frame = Frame(
        observation,
        action,
        reward,
        info["final_obs"],
        terminated.float(),
        (terminated | truncated).float(),
        info["success"].float(),
        info["distance"],
        info["violations"].float(),
    )
    return frame, after


@torch.no_grad()
def rollout_of(frames: list[Frame], network: ActorCritic, noise: Tensor) -> Rollout:
    """Return the rollout of T frames whose actions were drawn with `noise`, (T, N, joints), of
    standard deviation one.
    """
    stacked = Frame(*(torch.stack(column) for column in zip(*frames, strict=True)))
    # The mean cancels: an action is its mean plus the noise times the deviation.
    log_probability = network.log_probability(torch.zeros_like(noise), noise * network.log_deviation.exp())
    return Rollout(stacked.observation, stacked.action, log_probability, *stacked[2:])
