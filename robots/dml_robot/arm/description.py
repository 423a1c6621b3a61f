"""The arm: a FANUC LR Mate 200iC (5 kg, six axes, 704 mm reach from axis 1 to the centre of the
wrist).

Dimensions, limits and speeds are those of its data sheet and of the ROS-Industrial description.
With all joints at zero the upper arm points up (+z) and the forearm forward (+x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

JOINTS_COUNT = 6


@dataclass(frozen=True)
class Joint:
    """A revolute joint.

    Args:
        name: its name in the MJCF.
        offset: from the joint before, in that joint's frame (metres).
        axis: `"x"`, `"y"` or `"z"` of its own frame.
        sign: +1 or -1, the direction of a positive angle about the axis.
        limits_degrees: lowest and highest angle.
        speed_degrees: highest speed, per second.
    """

    name: str
    offset: tuple[float, float, float]
    axis: str
    sign: int
    limits_degrees: tuple[float, float]
    speed_degrees: float

    @property
    def lower(self) -> float:
        """Lowest angle in radians."""
        return math.radians(self.limits_degrees[0])

    @property
    def upper(self) -> float:
        """Highest angle in radians."""
        return math.radians(self.limits_degrees[1])

    @property
    def speed(self) -> float:
        """Highest speed in radians per second."""
        return math.radians(self.speed_degrees)

    @property
    def acceleration(self) -> float:
        """Highest acceleration in radians per second squared."""
        return self.speed / TIME_TO_FULL_SPEED


TIME_TO_FULL_SPEED = 0.2
"""Seconds in which every joint goes from rest to its full speed.

Neither the data sheet nor the ROS-Industrial description states accelerations, so this one is an assumption: with it,
the 300 mm leg of a pick-and-place cycle at half the reach takes 0.28 s.
"""

JOINTS = (
    Joint("joint_1", (0.0, 0.0, 0.330), "z", +1, (-170.0, 170.0), 350.0),
    Joint("joint_2", (0.075, 0.0, 0.0), "y", +1, (-60.0, 140.0), 350.0),
    Joint("joint_3", (0.0, 0.0, 0.300), "y", -1, (-142.0, 230.0), 400.0),
    Joint("joint_4", (0.0, 0.0, 0.075), "x", -1, (-190.0, 190.0), 450.0),
    Joint("joint_5", (0.320, 0.0, 0.0), "y", -1, (-120.0, 120.0), 450.0),
    Joint("joint_6", (0.080, 0.0, 0.0), "x", -1, (-360.0, 360.0), 720.0),
)

TOOL_OFFSET = (0.0, 0.0, 0.0)
"""Offset from joint 6 to the point that is brought to the target: the centre of the flange, as the arm has no tool."""

COUPLED = (1, 2)
"""Indices of joints 2 and 3. The controller measures joint 3 against the horizontal: `q3 - q2` with these signs.

The table gives one pair of limits for joint 3. Read as the ROS-Industrial description does, it bounds `q3`; read as the
controller does, it bounds `q3 - q2`. The arm here obeys both, so that it is within the limits whichever is meant.
"""

REACH = 0.704
"""Distance of the wrist's centre from axis 2 plus that axis' offset, arm stretched (metres)."""

HOME_DEGREES = (0.0, 0.0, 0.0, 0.0, -90.0, 0.0)
"""The pose that episodes begin in, apart from noise: upper arm up, forearm forward, flange pointing down."""

MASS = 27.0
"""Kilograms, all links together."""


@dataclass(frozen=True)
class Link:
    """A rigid part of the arm, drawn and weighed as one capsule.

    Args:
        name: its name in the MJCF.
        start: one end of the capsule's axis, in the frame of the link's joint (metres).
        end: the other end.
        radius: metres.
        mass: kilograms. The data sheet states only the sum; its division among the links is an
            estimate.
    """

    name: str
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    mass: float


BASE = Link("base", (0.0, 0.0, 0.09), (0.0, 0.0, 0.22), 0.09, 8.0)
"""The fixed part."""

LINKS = (
    Link("link_1", (0.0, 0.0, -0.03), (0.075, 0.0, 0.0), 0.085, 6.5),
    Link("link_2", (0.0, 0.0, 0.0), (0.0, 0.0, 0.300), 0.060, 5.0),
    Link("link_3", (0.0, 0.0, 0.0), (0.0, 0.0, 0.075), 0.060, 4.0),
    Link("link_4", (0.04, 0.0, 0.0), (0.290, 0.0, 0.0), 0.045, 2.5),
    Link("link_5", (0.0, 0.0, 0.0), (0.050, 0.0, 0.0), 0.035, 0.8),
    Link("link_6", (-0.015, 0.0, 0.0), (-0.005, 0.0, 0.0), 0.025, 0.2),
)
"""The link that each joint moves, in the order of `JOINTS`."""
