"""The arm: its kinematics against the Denavit-Hartenberg parameters, and its motion against the
limits.
"""

from __future__ import annotations

import math

import pytest
import torch
from dml_robot.arm.description import BASE, COUPLED, JOINTS, LINKS, MASS, REACH
from dml_robot.arm.kinematics import point
from dml_robot.arm.motion import Limits, Motion
from dml_robot.arm.reach import collides, poses
from torch import Tensor

PERIOD = 0.05

# Modified Denavit-Hartenberg parameters: alpha, a, d, offset of theta; and the sign of the angle.
DENAVIT_HARTENBERG = (
    (0, 0.0, 0.0, 0, 1),
    (-90, 0.075, 0.0, -90, 1),
    (0, 0.300, 0.0, 0, -1),
    (-90, 0.075, 0.320, 0, -1),
    (90, 0.0, 0.0, 0, -1),
    (-90, 0.0, 0.080, 0, -1),
)


def flange(angles: list[float]) -> Tensor:
    """Return the flange's position by the parameters, from axis 2's height on."""
    transform = torch.eye(4, dtype=torch.float64)
    for angle, (alpha, a, d, offset, sign) in zip(angles, DENAVIT_HARTENBERG, strict=True):
        theta, twist = sign * angle + math.radians(offset), math.radians(alpha)
        ct, st, ca, sa = math.cos(theta), math.sin(theta), math.cos(twist), math.sin(twist)
        step = [[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]]
        transform = transform @ torch.tensor(step, dtype=torch.float64)
    return transform[:3, 3] + torch.tensor([0.0, 0.0, 0.330], dtype=torch.float64)


def test_the_tool_is_where_the_denavit_hartenberg_parameters_say() -> None:
    angles = poses(200, torch.Generator().manual_seed(0)).double()
    expected = torch.stack([flange(row) for row in angles.tolist()])
    assert (point(angles) - expected).abs().max() < 1e-12


def test_stretched_and_at_zero() -> None:
    zero = torch.zeros(6, dtype=torch.float64)
    torch.testing.assert_close(point(zero), torch.tensor([0.475, 0.0, 0.705], dtype=torch.float64))
    # The wrist's centre is farthest from axis 1 when it is in line with axes 2 and 3.
    stretched = torch.tensor([0.0, math.pi / 2, math.pi / 2 - math.atan(0.075 / 0.320), 0, 0, 0], dtype=torch.float64)
    wrist = point(stretched, link=4, offset=(0.0, 0.0, 0.0))
    assert wrist[0].item() == pytest.approx(REACH, abs=5e-4)
    assert sum(link.mass for link in (BASE, *LINKS)) == pytest.approx(MASS)


def commands(kind: str, count: int, steps: int) -> Tensor:
    """Return (steps, count, 6) commands that try to pass the limits."""
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(steps, count, 6, generator=generator) * 2 - 1
    if kind == "noise":
        return drawn.sign()
    held = drawn[::25].repeat_interleave(25, dim=0)[:steps]
    return held.sign() if kind == "full speed" else held


@pytest.mark.parametrize("kind", ["noise", "full speed", "held"])
def test_no_command_leads_beyond_a_limit(kind: str) -> None:
    motion, limits = Motion(PERIOD), Limits()
    angles = poses(512, torch.Generator().manual_seed(1))
    speeds = torch.zeros_like(angles)
    acceleration = torch.tensor([joint.acceleration for joint in JOINTS])
    nearest = torch.full((6,), torch.inf)
    nearest_coupled = torch.inf
    within = torch.linspace(0, PERIOD, 6)[:, None, None]
    for command in commands(kind, len(angles), 300):
        later, faster = motion.advance(angles, speeds, command)
        change = (faster - speeds) / PERIOD
        assert (change.abs() <= acceleration * (1 + 1e-4)).all()
        # Between the ends, too: the path is a parabola.
        path = angles + speeds * within + change * within**2 / 2
        assert not limits.beyond(path, speeds + change * within).any()
        assert torch.allclose(path[-1], later, atol=2e-5)
        angles, speeds = later, faster
        nearest = nearest.minimum(torch.minimum(angles - limits.lower, limits.upper - angles).amin(0))
        difference = angles[:, COUPLED[1]] - angles[:, COUPLED[0]]
        room = torch.minimum(difference - limits.lower[COUPLED[1]], limits.upper[COUPLED[1]] - difference)
        nearest_coupled = min(nearest_coupled, room.min().item())
    if kind == "full speed":  # the limits are not only respected, they are reached
        assert (nearest < 0.01).all()
        assert nearest_coupled < 0.01


def test_what_is_asked_is_done_where_there_is_room() -> None:
    motion = Motion(PERIOD)
    angles, speeds = torch.zeros(1, 6), torch.zeros(1, 6)
    for _ in range(4):
        angles, speeds = motion.advance(angles, speeds, torch.full((1, 6), 0.5))
    expected = 0.5 * motion.speed
    torch.testing.assert_close(speeds, expected[None])
    # Two periods of full acceleration to half the speed (but for 1 %), then two at it.
    travel = expected**2 / 2 / torch.tensor([joint.acceleration for joint in JOINTS]) + expected * 2 * PERIOD
    torch.testing.assert_close(angles, travel[None], rtol=0.02, atol=0)


def test_poses_touch_nothing_and_are_within_the_limits() -> None:
    found = poses(4000, torch.Generator().manual_seed(5))
    assert found.shape == (4000, 6)
    assert not Limits().beyond(found, torch.zeros_like(found)).any()
    assert not collides(found).any()
    tool = point(found)
    assert (tool[:, 2] > 0).all()
    assert (tool - torch.tensor([0.0, 0.0, 0.33])).norm(dim=-1).max() < REACH + 0.080 + 0.075
    assert torch.equal(found, poses(4000, torch.Generator().manual_seed(5)))
    into_the_floor = torch.tensor([[0.0, 2.2, 0.0, 0.0, 0.0, 0.0]])
    folded = torch.tensor([[0.0, 0.0, -2.2, 0.0, 0.0, 0.0]])
    assert collides(into_the_floor).all()
    assert collides(folded).all()
