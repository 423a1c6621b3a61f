"""Targets that the arm can reach, and initial poses: computed from joint angles.

A target is the tool's position for some angles within the limits, including the coupled limit, at
which the arm touches neither the floor nor itself. Links are modelled as capsules.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .description import BASE, COUPLED, HOME_DEGREES, JOINTS, JOINTS_COUNT, LINKS
from .kinematics import point
from .motion import Motion

CLEARANCE = 0.02
"""Minimum distance in metres between the arm's surfaces and the floor, and between parts that are not adjacent."""

# Points along the forearm (link 4) and the hand (links 5 and 6), in their joints' frames. The
# forearm's begin where it is no longer adjacent to the upper arm; neighbouring points are closer
# than a link's radius plus the clearance.
_FOREARM, _HAND = 3, 4
_POINTS = [(_FOREARM, (along, 0.0, 0.0)) for along in (0.12, 0.18, 0.24, 0.30)] + [
    (_HAND, (along, 0.0, 0.0)) for along in (0.02, 0.05, JOINTS[5].offset[0])
]

_CHUNK = 2048  # poses at a time, so that intermediate results fit into a processor's cache


def collides(angles: Tensor) -> Tensor:
    """Return (N,) bool: whether the arm touches the floor, its base or itself.

    Args:
        angles: (N, 6) radians.
    """
    return torch.cat([_collides(chunk) for chunk in angles.split(_CHUNK)])


def _collides(angles: Tensor) -> Tensor:
    points = torch.stack([point(angles, index, offset) for index, offset in _POINTS])  # (P, N, 3)
    radius = torch.tensor([[LINKS[index].radius + CLEARANCE] for index, _ in _POINTS], dtype=angles.dtype)
    elbow = point(angles, 2, LINKS[2].end)
    touching = (points[..., 2] < radius).any(0) | (elbow[:, 2] < LINKS[2].radius + CLEARANCE)
    base = tuple(angles.new_tensor(end).expand_as(elbow) for end in (BASE.start, BASE.end))
    touching |= _distance(elbow[None], *base)[0] < LINKS[2].radius + CLEARANCE + BASE.radius
    touching |= (_distance(points, *base) < radius + BASE.radius).any(0)
    for index in (0, 1):
        link = LINKS[index]
        ends = point(angles, index, link.start), point(angles, index, link.end)
        touching |= (_distance(points, *ends) < radius + link.radius).any(0)
    return touching


def _distance(points: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return (P, N): distances of (P, N, 3) points from the segments between (N, 3) ends."""
    axis, offset = end - start, points - start
    position = (offset * axis).sum(-1, keepdim=True) / axis.square().sum(-1, keepdim=True)
    return (offset - position.clamp(0, 1) * axis).norm(dim=-1)


def poses(count: int, generator: torch.Generator, spread: float = 1.0) -> Tensor:
    """Return (count, 6) float32 angles on the CPU, within the limits, at which the arm touches
    nothing.

    Args:
        count: number of poses.
        generator: of the CPU.
        spread: 1 draws uniformly between the limits; less, from this fraction of the range from the
            home pose to each limit.
    """
    limits = Motion(1.0)
    home = torch.tensor([math.radians(angle) for angle in HOME_DEGREES])
    lower, upper = home + spread * (limits.lower - home), home + spread * (limits.upper - home)
    second, third = COUPLED
    kept: list[Tensor] = []
    missing = count
    while missing > 0:
        drawn = lower + (upper - lower) * torch.rand(2 * missing + 64, JOINTS_COUNT, generator=generator)
        difference = drawn[:, third] - drawn[:, second]
        drawn = drawn[(difference > limits.lower[third]) & (difference < limits.upper[third])]
        kept.append(drawn[~collides(drawn)][:missing])
        missing -= len(kept[-1])
    return torch.cat(kept)
