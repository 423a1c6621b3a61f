"""Forward kinematics for many arms at once, on any device and in any floating dtype.

A point is transformed from its link's frame to the base, joint by joint. Every axis is one of x, y
and z, so a rotation changes two coordinates and all operators are pointwise: no products of small
matrices, and chains that a device can fuse.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .description import JOINTS, JOINTS_COUNT, TOOL_OFFSET

# The two coordinates changed by a rotation; a positive one turns the first towards the second.
_PLANES = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}


def point(angles: Tensor, link: int = JOINTS_COUNT - 1, offset: tuple[float, float, float] = TOOL_OFFSET) -> Tensor:
    """Return the position of a point of a link.

    Args:
        angles: (..., 6) joint angles in radians.
        link: index of the joint that moves the link.
        offset: the point, in that joint's frame (metres).

    Returns:
        (..., 3) metres in the base's frame, of the dtype and on the device of `angles`.
    """
    sines, cosines = angles.sin().unbind(-1), angles.cos().unbind(-1)
    # Coordinates are Python numbers until an angle enters, so constants cost no operator.
    at: list[Tensor | float] = list(offset)
    for index in range(link, -1, -1):
        joint = JOINTS[index]
        first, second = _PLANES[joint.axis] if joint.sign > 0 else _PLANES[joint.axis][::-1]
        at[first], at[second] = _rotated(at[first], at[second], sines[index], cosines[index])
        at = [_sum(coordinate, shift) for coordinate, shift in zip(at, joint.offset, strict=True)]
    return torch.stack([c if isinstance(c, Tensor) else torch.full_like(sines[0], c) for c in at], dim=-1)


def _rotated(
    a: Tensor | float, b: Tensor | float, sine: Tensor, cosine: Tensor
) -> tuple[Tensor | float, Tensor | float]:
    """Return (cos a - sin b, sin a + cos b)."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.addcmul(cosine * a, sine, b, value=-1), torch.addcmul(sine * a, cosine, b)
    return _sum(_scaled(cosine, a), _scaled(sine, b), -1), _sum(_scaled(sine, a), _scaled(cosine, b))


def _scaled(factor: Tensor, value: Tensor | float) -> Tensor | float:
    return factor * value if isinstance(value, Tensor) or value != 0.0 else 0.0


def _sum(a: Tensor | float, b: Tensor | float, sign: int = 1) -> Tensor | float:
    """Return a + sign b, without an operator if one of them is the number zero."""
    if isinstance(b, float) and b == 0.0:
        return a
    if isinstance(a, float) and a == 0.0:
        return b if sign > 0 else -b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.add(a, b, alpha=sign)
    return a + sign * b
