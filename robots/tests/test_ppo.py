"""PPO: its estimates compared with plain loops, its update, and that it learns."""

from __future__ import annotations

import math

import pytest
import torch
from dml_robot import devices
from dml_robot.learn import ppo
from dml_robot.learn.network import ActorCritic
from dml_robot.learn.ppo import METRICS, Frame, Ppo, advantages, rollout_of
from dml_robot.learn.ppo_device import DeviceTrainer, batches_of
from dml_robot.learn.settings import Settings

T, N, FEATURES, JOINTS = 5, 8, 24, 6


def random_rollout(network: ActorCritic) -> ppo.Rollout:
    noise = torch.randn(T, N, JOINTS)
    offsets = noise * network.log_deviation.exp()
    frames = []
    for offset in offsets:
        observation = torch.randn(N, FEATURES)
        ended = (torch.rand(N) < 0.3).float()
        frames.append(
            Frame(
                observation,
                (network.actor(observation) + offset).detach(),
                torch.randn(N),
                torch.randn(N, FEATURES),
                ended * (torch.rand(N) < 0.5),
                ended,
                ended,
                torch.rand(N),
                torch.zeros(N),
            )
        )
    return rollout_of(frames, network, noise)


def test_advantages_are_those_of_the_definition():
    torch.manual_seed(1)
    reward, value, after = torch.randn(3, T, N).unbind()
    ended = (torch.rand(T, N) < 0.3).float()
    terminated = ended * (torch.rand(T, N) < 0.5)
    found = advantages(reward, value, after, terminated, ended)
    for arm in range(N):
        for step in range(T):
            expected, factor = 0.0, 1.0
            for later in range(step, T):
                goes_on = 1 - terminated[later, arm].item()
                delta = reward[later, arm] + ppo.DISCOUNT * after[later, arm] * goes_on - value[later, arm]
                expected += factor * delta.item()
                if ended[later, arm]:
                    break
                factor *= ppo.DISCOUNT * ppo.TRACE
            assert found[step, arm].item() == pytest.approx(expected, abs=1e-5)


def test_log_probability_is_that_of_the_normal_distribution():
    torch.manual_seed(1)
    network = ActorCritic(FEATURES, JOINTS, (16,))
    mean, action = torch.randn(2, N, JOINTS).unbind()
    expected = torch.distributions.Normal(mean, network.log_deviation.exp()).log_prob(action).sum(-1)
    torch.testing.assert_close(network.log_probability(mean, action), expected)


def test_a_rollout_has_the_density_that_its_actions_were_drawn_with():
    torch.manual_seed(1)
    network = ActorCritic(FEATURES, JOINTS, (16,))
    rollout = random_rollout(network)
    expected = network.log_probability(network.actor(rollout.observation), rollout.action)
    torch.testing.assert_close(rollout.log_probability, expected.detach(), rtol=1e-4, atol=1e-4)


def test_an_update_makes_better_actions_likelier(device):
    torch.manual_seed(1)
    network = ActorCritic(FEATURES, JOINTS, (16,))
    rollout = random_rollout(network)
    before = rollout.log_probability.clone()
    learner = Ppo(network, device, 1e-3, 10)
    numbers = dict(zip(METRICS, learner.update(ppo.Rollout(*(x.to(device) for x in rollout)), 2).tolist(), strict=True))
    assert numbers["reward"] == pytest.approx(rollout.reward.mean().item(), abs=1e-5)
    assert numbers["episodes"] == rollout.ended.sum().item()
    network.cpu()
    value, after = network.value(rollout.observation), network.value(rollout.final)
    gain = advantages(rollout.reward, value, after, rollout.terminated, rollout.ended)
    change = network.log_probability(network.actor(rollout.observation), rollout.action) - before
    assert ((gain - gain.mean()) * change).mean() > 0


def test_the_learning_rate_falls_to_zero(device):
    network = ActorCritic(FEATURES, JOINTS, (16,))
    rollout = ppo.Rollout(*(part.to(device) for part in random_rollout(network)))
    learner = Ppo(network, device, 1e-3, 4)
    rates = [learner.update(rollout, 1)[METRICS.index("learning_rate")].item() for _ in range(5)]
    assert rates == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3, 0.0])


@pytest.mark.parametrize(
    ("steps", "batch_size", "batches"), [(1024, 256, 4), (1024, 5000, 1), (1000, 300, 2), (7, 1, 7)]
)
def test_batches_divide_the_rollout(steps: int, batch_size: int, batches: int):
    found = batches_of(steps, batch_size)
    assert steps % found == 0
    assert found == batches or math.isclose(steps / found, batch_size, rel_tol=1)


def test_it_learns_from_scratch_in_seconds():
    settings = Settings(parallel=256, batch_size=1024, hidden=(48, 48), seed=3).checked()
    trainer = DeviceTrainer(settings)
    rows = [trainer.iterate() for _ in range(40)]
    distances = [row["distance"] for row in rows if row["episodes"] >= 10]
    assert sum(distances[-5:]) < 0.6 * sum(distances[:5]), distances


def test_graphs_change_no_bit():
    if not devices.available("dml"):
        pytest.skip("torch-dml is not installed, or finds no Vulkan driver")
    curves = []
    for graphs in (False, True):
        settings = Settings(device="dml", parallel=16, horizon=4, batch_size=32, hidden=(16,), graphs=graphs)
        trainer = DeviceTrainer(settings.checked())
        curves.append([trainer.iterate() for _ in range(4)])
    assert curves[0] == curves[1]
    assert devices.fallbacks(torch.device("dml")) == {}
