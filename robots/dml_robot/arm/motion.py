"""The motion of joints: velocity commands, followed within limits of position, speed and
acceleration.

This is the part of an arm's controller between a program and the servos: it makes of each command
a motion that the arm can follow. Within a control period a joint has a constant acceleration, so
its speed is linear in time and its position a parabola, exactly.

Why no limit is ever passed. Let a joint move towards a limit with speed `v`, `a` being its highest
acceleration and `h` the period. Braking at once, it comes to rest within

    stop(v) = v^2 / (2 a) + v h / 2        (the second term: the last, partial period of braking is a whole one)

A new speed `w` is chosen so that the period's travel `h (v + w) / 2` and `stop(w)` fit into the
remaining room `d`:

    w <= -a h + sqrt((a h)^2 + 2 a (d - v h / 2))

Full braking, `w = max(v - a h, 0)`, satisfies this whenever `stop(v) <= d`, so by induction there
is always such a `w`, within the acceleration limit. For the coupled limit of joints 2 and 3 the
room is divided: each joint gets its stopping distance, and half of the rest; then the travel of
both, and the stopping distances of both, fit into the room.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .description import COUPLED, JOINTS

MARGIN_POSITION = 0.002
"""Distance in radians from the limits. Servos follow the motion with a lag, and must not pass the limits either."""

MARGIN_SPEED = 0.99
"""Fraction of the joints' highest speeds that is used. A servo that catches up is briefly faster than its motion."""


class Motion:
    """The motion of arms on a device, in steps of a control period.

    Args:
        period: control period in seconds.
        device: of the tensors given to `advance`.
    """

    def __init__(self, period: float, device: torch.device | str = "cpu") -> None:
        """Uploads the limits."""

        def tensor(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)

        lower, upper = (
            [joint.lower + MARGIN_POSITION for joint in JOINTS],
            [joint.upper - MARGIN_POSITION for joint in JOINTS],
        )
        self.period = period
        self.lower, self.upper = tensor(lower), tensor(upper)
        self.speed = tensor([MARGIN_SPEED * joint.speed for joint in JOINTS])
        acceleration = tensor([joint.acceleration for joint in JOINTS])
        self._change = acceleration * period
        self._change_squared = self._change**2
        self._twice_acceleration = 2 * acceleration
        self._inverse = 0.5 / acceleration
        # Row 0 is for upper limits, row 1 for lower ones: room = bounds - signs * angles.
        self._bounds = torch.stack([self.upper, -self.lower])
        self._signs = tensor([1.0, -1.0])[:, None]
        self._coupled_bounds = self._bounds[:, COUPLED[1]].contiguous()

    def advance(self, angles: Tensor, speeds: Tensor, command: Tensor) -> tuple[Tensor, Tensor]:
        """Return angles and speeds a period later.

        Args:
            angles: (N, 6) radians, within the limits.
            speeds: (N, 6) radians per second, such that the arm can stop within the limits.
            command: (N, 6) from -1 to 1, the speeds to reach as fractions of each joint's highest
                speed.

        Returns:
            (N, 6) angles and (N, 6) speeds that satisfy the same conditions.
        """
        towards = speeds[:, None, :] * self._signs  # (N, 2, 6): towards upper limits, towards lower ones
        room = self._room(angles, towards.relu())
        free = self._change_squared + self._twice_acceleration * torch.sub(room, towards, alpha=self.period / 2)
        most = free.relu().sqrt().sub(self._change).relu().minimum(self.speed)
        target = command * self.speed
        new = target.maximum(speeds - self._change).minimum(speeds + self._change)
        new = new.minimum(most[:, 0]).maximum(-most[:, 1])
        moved = torch.add(angles, speeds + new, alpha=self.period / 2)
        return moved.minimum(self.upper).maximum(self.lower), new  # rounding in float32 must not pass a limit either

    def _room(self, angles: Tensor, towards: Tensor) -> Tensor:
        """Return (N, 2, 6): how far each joint may travel towards its upper and its lower limit,
        braking included.
        """
        room = self._bounds - angles[:, None, :] * self._signs
        # q3 - q2 nears its upper limit as q3 rises and as q2 falls, and its lower limit the other
        # way round.
        second, third = COUPLED
        stop = (towards * self._inverse + self.period / 2) * towards
        stop_third, stop_second = stop[:, :, third], stop[:, :, second].flip(1)
        difference = (angles[:, third] - angles[:, second])[:, None] * self._signs[:, 0]
        rest = (self._coupled_bounds - difference - stop_third - stop_second) / 2
        shared_third, shared_second = stop_third + rest, (stop_second + rest).flip(1)
        columns = list(room.unbind(-1))
        columns[third] = columns[third].minimum(shared_third)
        columns[second] = columns[second].minimum(shared_second)
        return torch.stack(columns, dim=-1)


class Limits:
    """Checks arms' states against the table's limits, on a device."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        """Uploads the limits."""
        rows = [[joint.lower for joint in JOINTS], [joint.upper for joint in JOINTS], [joint.speed for joint in JOINTS]]
        self.lower, self.upper, self.speed = torch.tensor(rows, dtype=torch.float32, device=device).unbind(0)

    def beyond(self, angles: Tensor, speeds: Tensor) -> Tensor:
        """Return (...,) bool: whether any joint is beyond its limits, including the coupled limit,
        or exceeds its speed.

        Args:
            angles: (..., 6) radians.
            speeds: (..., 6) radians per second.
        """
        second, third = COUPLED
        difference = angles[..., third] - angles[..., second]
        wrong = (angles < self.lower) | (angles > self.upper) | (speeds.abs() > self.speed)
        return wrong.any(-1) | (difference < self.lower[third]) | (difference > self.upper[third])
