"""The simulators: compared with each other, their episodes, and the requirements of a
`VectorEnv`.
"""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import mujoco
import numpy as np
import pytest
import torch
from dml_robot import devices
from dml_robot.arm.description import JOINTS, MASS
from dml_robot.arm.kinematics import point
from dml_robot.arm.mjcf import document
from dml_robot.arm.reach import poses
from dml_robot.errors import CheckpointError, DeviceError, SettingsError
from dml_robot.sim import make
from dml_robot.sim.episodes import POOL
from dml_robot.task import ANGLES, LAST_ACTION, SPEEDS, TARGET, TOOL, Observer, ReachTask
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SIMULATORS = ("batched", "mujoco")


def simulator(name: str, arms: int = 16, seed: int = 0, **settings: Any) -> Any:
    return make(name, arms, "cpu", seed, as_torch="cpu", threads=1 if name == "mujoco" else None, **settings)


def states(observation: Tensor) -> Tensor:
    """Return the states of observations: radians, radians per second, metres."""
    return Observer().state(observation)


def test_mujoco_agrees_about_the_arm() -> None:
    model = mujoco.MjModel.from_xml_string(document())
    data = mujoco.MjData(model)
    assert model.body_mass.sum() == pytest.approx(MASS)
    for angles in poses(50, torch.Generator().manual_seed(0)).double():
        data.qpos[:] = angles.numpy()
        mujoco.mj_forward(model, data)
        assert np.abs(data.site("tool").xpos - point(angles).numpy()).max() < 1e-12


@pytest.mark.parametrize("kind", ["full speed", "noise", "wave"])
def test_the_simulators_agree_within_a_millimetre(kind: str) -> None:
    """The same commands lead both along the same joint trajectories, to the limits; MuJoCo's own
    tool position is compared.
    """
    arms, steps = 24, 150
    task = ReachTask(time_limit=60.0, tolerance=1e-6, spread=1.0)  # no episode ends during the test
    batched, physical = simulator("batched", arms, task=task), simulator("mujoco", arms, task=task)
    batched.reset(seed=1), physical.reset(seed=1)
    model = mujoco.MjModel.from_xml_string(document())
    data = mujoco.MjData(model)
    drawn = torch.rand(steps, arms, 6, generator=torch.Generator().manual_seed(7)) * 2 - 1
    if kind == "full speed":
        drawn = drawn[::30].repeat_interleave(30, dim=0).sign()
    if kind == "wave":
        drawn = (drawn[0] * 3 + torch.arange(steps)[:, None, None] * 0.15).sin()
    speeds = torch.tensor([joint.speed for joint in JOINTS])
    for step, action in enumerate(drawn):
        seen, *_, one = batched.step(action)
        measured, *_, other = physical.step(action)
        seen, measured = states(seen), states(measured)
        assert not one["violations"].any() and not other["violations"].any()
        assert (seen[:, TOOL] - measured[:, TOOL]).norm(dim=-1).max() < 1e-3
        assert (seen[:, ANGLES] - measured[:, ANGLES]).abs().max() < 2e-3
        assert ((seen[:, SPEEDS] - measured[:, SPEEDS]) / speeds).abs().max() < 0.02
        if step % 10 == 9:
            for arm, angles in enumerate(measured[:, ANGLES].double()):
                data.qpos[:] = angles.numpy()
                mujoco.mj_forward(model, data)
                assert np.linalg.norm(data.site("tool").xpos - seen[arm, TOOL].numpy()) < 1e-3


def test_mujoco_enforces_the_limits_by_itself() -> None:
    model = mujoco.MjModel.from_xml_string(document())
    for index, joint in enumerate(JOINTS):
        assert model.jnt_range[index] == pytest.approx([joint.lower, joint.upper])
    assert model.tendon_range[0] == pytest.approx([JOINTS[2].lower, JOINTS[2].upper])
    assert model.jnt_limited.all() and model.tendon_limited.all()


@pytest.mark.parametrize("name", SIMULATORS)
def test_an_observation_is_as_documented(name: str) -> None:
    arms = simulator(name)
    first, info = arms.reset(seed=3)
    assert first.shape == (16, 24) and first.dtype == torch.float32 and info == {}
    assert (first[:, SPEEDS] == 0).all() and (first[:, LAST_ACTION] == 0).all()
    torch.testing.assert_close(point(states(first)[:, ANGLES]), states(first)[:, TOOL], rtol=0, atol=1e-5)
    action = torch.full((16, 6), 0.3)
    seen, reward, terminated, truncated, info = arms.step(action)
    torch.testing.assert_close(seen[:, LAST_ACTION], action)
    assert torch.equal(seen[:, TARGET], first[:, TARGET])
    state = states(seen)
    torch.testing.assert_close(info["distance"], (state[:, TOOL] - state[:, TARGET]).norm(dim=-1), rtol=0, atol=1e-5)
    assert reward.dtype == torch.float32 and reward.shape == (16,)
    assert terminated.dtype == truncated.dtype == info["success"].dtype == torch.bool
    assert torch.equal(info["final_obs"], seen)
    again, _ = arms.reset()
    assert not torch.equal(again[:, TARGET], first[:, TARGET])
    assert torch.equal(arms.reset(seed=3)[0], first)


def servo(observation: Tensor, goal: Tensor, gain: float) -> Tensor:
    """A policy that knows the target angles: proportional control."""
    speeds = torch.tensor([joint.speed for joint in JOINTS])
    return (gain * (goal - states(observation)[:, ANGLES]) / speeds).clamp(-1, 1)


@pytest.mark.parametrize("name", SIMULATORS)
def test_success_is_two_centimetres_for_two_tenths_of_a_second(name: str) -> None:
    task = ReachTask()
    assert task.hold_periods * task.period == pytest.approx(task.hold)
    arms = simulator(name, 32, seed=11, task=task)
    observation, _ = arms.reset(seed=11)
    # The episode's targets come from poses of the same seed: drive to them, which also shows that
    # they can be reached.
    generator = torch.Generator().manual_seed(11)
    poses(POOL, generator, task.spread)
    goal = poses(POOL, generator)[:32]
    torch.testing.assert_close(point(goal), states(observation)[:, TARGET])
    inside = torch.zeros(32, dtype=torch.int32)
    finished = torch.zeros(32, dtype=torch.bool)
    for _ in range(task.limit_periods):
        observation, _, terminated, truncated, info = arms.step(servo(observation, goal, 4.0))
        inside = torch.where(info["distance"] < task.tolerance, inside + 1, 0)
        expected = inside == task.hold_periods + 1
        assert torch.equal(terminated[~finished], expected[~finished])
        assert torch.equal(terminated, info["success"])
        finished |= terminated | truncated
    assert finished.all()


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_new_episode_begins_in_the_step_that_ends_one(name: str) -> None:
    task = ReachTask(time_limit=0.2)
    arms = simulator(name, 4, task=task)
    before, _ = arms.reset(seed=0)
    for step in range(1, 3 * task.limit_periods + 1):
        seen, _, terminated, truncated, info = arms.step(torch.full((4, 6), 0.5))
        ends = step % task.limit_periods == 0
        assert truncated.all() == ends and truncated.any() == ends and not terminated.any()
        assert torch.equal(info["_final_obs"], terminated | truncated)
        assert torch.equal(info["final_obs"][:, TARGET], before[:, TARGET])
        if ends:
            assert (info["final_obs"][:, LAST_ACTION] == 0.5).all()
            assert (seen[:, SPEEDS] == 0).all() and (seen[:, LAST_ACTION] == 0).all()
            assert not torch.equal(seen[:, TARGET], before[:, TARGET])
        before = seen


@pytest.mark.parametrize("name", SIMULATORS)
def test_it_goes_on_exactly_from_a_saved_state(name: str) -> None:
    task = ReachTask(time_limit=0.6)
    arms, other = simulator(name, 5, seed=4, task=task), simulator(name, 5, seed=9, task=task)
    actions = torch.rand(60, 5, 6, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for action in actions[:25]:
        arms.step(action)
    other.load_state_dict(arms.state_dict())
    for action in actions[25:]:
        for one, two in zip(arms.step(action)[:4], other.step(action)[:4], strict=True):
            assert torch.equal(one, two)


@pytest.mark.parametrize("name", SIMULATORS)
def test_actions_that_are_none(name: str) -> None:
    arms = simulator(name, 4)
    arms.reset(seed=0)
    wrong = torch.tensor([[math.nan] * 6, [math.inf] * 6, [-1e30] * 6, [0.0] * 6])
    seen, reward, *_, info = arms.step(wrong)
    assert info["violations"].tolist() == [1, 0, 0, 0]
    assert seen.isfinite().all() and reward.isfinite().all()
    assert seen[:, LAST_ACTION].tolist() == [[0.0] * 6, [1.0] * 6, [-1.0] * 6, [0.0] * 6]
    for shape in ((3, 6), (4, 5), (24,), (4, 6, 1)):
        with pytest.raises(SettingsError, match="actions have"):
            arms.step(torch.zeros(shape))


def test_wrong_settings_have_one_clear_line() -> None:
    for arguments, message in (
        (("isaac", 1), "no simulator is called 'isaac'"),
        (("batched", 0), "arms must be a whole number from 1 on, not 0"),
        (("batched", 2.5), "arms must be a whole number"),
        (("batched", 1, "cpu", -1), "the seed must be a whole number"),
        (("batched", 1, "nowhere"), "no device is called 'nowhere'"),
    ):
        with pytest.raises(SettingsError, match=message) as caught:
            make(*arguments)
        assert "\n" not in str(caught.value)
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="there is no device cuda:7 here"):
            make("batched", 1, "cuda:7")


def test_equal_seeds_give_equal_episodes_everywhere() -> None:
    one, two, other = simulator("batched", seed=8), simulator("mujoco", seed=8), simulator("batched", seed=9)
    assert torch.equal(one.reset(seed=8)[0], two.reset(seed=8)[0])
    assert not torch.equal(one.reset(seed=8)[0], other.reset(seed=9)[0])


def test_a_step_of_the_batched_simulator_never_waits_for_its_device() -> None:

    class Watch(TorchDispatchMode):
        called: ClassVar[list[str]] = []

        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            self.called.append(function.name())
            return function(*arguments, **(keywords or {}))

    arms = simulator("batched", 8)
    with Watch():
        for _ in range(ReachTask().limit_periods + 1):
            arms.step(torch.zeros(8, 6))
    waiting = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::is_nonzero"}
    random = {"aten::rand", "aten::randn", "aten::randint", "aten::randperm", "aten::uniform_", "aten::normal_"}
    assert Watch.called and not (waiting | random) & {name.split(".")[0] for name in Watch.called}


@pytest.mark.parametrize("name", SIMULATORS)
def test_what_does_not_fit_has_one_clear_line(name: str) -> None:
    arms, other = make(name, 4), make(name, 5)
    for wrong in (None, "text", [[0.0] * 6] * 5, torch.zeros(4, 6, dtype=torch.complex64), {"a": 1}):
        with pytest.raises(SettingsError, match="actions have"):
            arms.step(wrong)
    for seed in (-1, 1.5, 2**70, True):
        with pytest.raises(SettingsError, match="the seed must be a whole number"):
            arms.reset(seed=seed)
    for saved in (None, {}, {"seed": 1}, {"episodes": {}}, other.state_dict()):
        with pytest.raises(CheckpointError, match="saved state"):
            arms.load_state_dict(saved)


def test_no_gradient_is_kept_from_step_to_step() -> None:
    arms = make("batched", 4)
    actions = torch.zeros(4, 6, requires_grad=True)
    observation, reward, *_ = arms.step(actions)
    assert not observation.requires_grad and not reward.requires_grad
    assert not any(tensor.requires_grad for tensor in arms.state)


def test_a_step_does_not_write_into_what_it_gave_before() -> None:
    """Neither observations nor saved states change later."""
    for name in SIMULATORS:
        arms = simulator(name, 4)
        first, _ = arms.reset(seed=0)
        saved = arms.state_dict()
        kept = copy.deepcopy((first, saved))
        for _ in range(ReachTask().limit_periods + 2):
            arms.step(torch.ones(4, 6))
        assert torch.equal(first, kept[0])
        torch.testing.assert_close(saved, kept[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    "figures",
    [{"period": 0}, {"period": math.nan}, {"hold": 0.01}, {"time_limit": -1}, {"spread": 2}, {"tolerance": 0}],
)
def test_figures_that_make_no_task(figures: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="the task's"):
        ReachTask(**figures)


def test_more_arms_than_pairs() -> None:
    arms = make("batched", POOL + 3)
    observation, _ = arms.reset(seed=0)
    assert torch.equal(observation[POOL:], observation[:3])
    assert arms.step(torch.zeros(POOL + 3, 6))[0].shape == (POOL + 3, 24)


def test_arms_on_the_device_move_as_on_the_cpu(device: torch.device) -> None:
    """The same actions give the same positions; episodes end and begin at the same steps."""
    task = ReachTask(time_limit=0.5)
    there, here = make("batched", 32, device, 6, task=task), make("batched", 32, "cpu", 6, task=task)
    before = devices.fallbacks(device)
    torch.testing.assert_close(there.reset(seed=6)[0].cpu(), here.reset(seed=6)[0])
    for action in torch.rand(25, 32, 6, generator=torch.Generator().manual_seed(1)) * 2.4 - 1.2:
        one, two = there.step(action.to(device)), here.step(action)
        for mine, expected in zip(one[:4], two[:4], strict=True):
            torch.testing.assert_close(mine.cpu(), expected, rtol=1e-4, atol=1e-4)
        for name, expected in two[4].items():
            torch.testing.assert_close(one[4][name].cpu(), expected, rtol=1e-4, atol=1e-4)
    other = make("batched", 32, device, 0, task=task)
    other.load_state_dict(there.state_dict())
    action = torch.zeros(32, 6, device=device)
    assert torch.equal(there.step(action)[0].cpu(), other.step(action)[0].cpu())
    assert devices.fallbacks(device) == before
