"""The arm as an MJCF document, MuJoCo's format: primitives, made from the description.

Each joint has two actuators, one that pulls towards an angle and one towards a speed: a servo that
follows a motion. They are stiff, so that the arm follows within hundredths of a degree, and gravity
is compensated, as in the arm's own controller. Collisions are off: poses and targets are free of
contact, and contact on the way between them is not noticed.
"""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from .description import BASE, COUPLED, JOINTS, LINKS, REACH, TOOL_OFFSET, Link

TIMESTEP = 0.005
"""MuJoCo's time step in seconds."""

STIFFNESS = 1e6
"""Newton metres per radian of a servo."""

DAMPING = 1e4
"""Newton metre seconds per radian. The time constant damping / stiffness, 10 ms, is longer than a step: stable."""

ARMATURE = 0.1
"""Kilogram square metres: a motor's rotor as seen through its gears; an estimate, as no data sheet states it."""

_AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
_YELLOW, _GREY = "0.95 0.77 0.06 1", "0.25 0.25 0.28 1"


def document(*, scene: bool = False) -> str:
    """Return the MJCF document.

    Args:
        scene: whether to add what is needed for pictures: a floor, light, a camera, and a sphere,
            the mocap body "target".
    """
    links = ""
    for joint, link in reversed(list(zip(JOINTS, LINKS, strict=True))):
        axis = _numbers(*(joint.sign * part for part in _AXES[joint.axis]))
        tool = "" if links else f'<site name="tool" pos="{_numbers(*TOOL_OFFSET)}" size="0.008" rgba="0.1 0.1 0.9 1"/>'
        links = (
            f'<body name={quoteattr(link.name)} pos="{_numbers(*joint.offset)}" gravcomp="1">'
            f'<joint name={quoteattr(joint.name)} axis="{axis}" range="{_numbers(joint.lower, joint.upper)}"/>'
            f"{_capsule(link)}{tool}{links}</body>"
        )
    second, third = (JOINTS[index] for index in COUPLED)
    servos = "".join(
        f'<position name="{joint.name}_angle" joint="{joint.name}" kp="{STIFFNESS:g}"/>'
        f'<velocity name="{joint.name}_speed" joint="{joint.name}" kv="{DAMPING:g}"/>'
        for joint in JOINTS
    )
    return f"""<mujoco model="LR Mate 200iC">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{TIMESTEP}" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0" rgba="{_YELLOW}"/><joint armature="{ARMATURE}"/></default>
  {_VISUAL if scene else ""}
  <worldbody>
    {_SCENE if scene else ""}
    <body name="{BASE.name}">{_capsule(BASE, _GREY)}{links}</body>
  </worldbody>
  <tendon>
    <fixed name="coupled" range="{_numbers(third.lower, third.upper)}">
      <joint joint="{third.name}" coef="1"/><joint joint="{second.name}" coef="-1"/>
    </fixed>
  </tendon>
  <actuator>{servos}</actuator>
</mujoco>
"""


_VISUAL = """<visual><global offwidth="1920" offheight="1080"/><quality shadowsize="2048"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.85 0.9 0.95" rgb2="0.45 0.55 0.7"
      width="128" height="128"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="0.75 0.76 0.78" rgb2="0.68 0.69 0.72"
      width="256" height="256"/>
    <material name="floor" texture="tiles" texrepeat="8 8"/>
  </asset>"""

_SCENE = f"""<light pos="0.5 -1 2.5" dir="-0.2 0.4 -1" diffuse="0.8 0.8 0.8"/>
    <geom name="floor" type="plane" size="2 2 0.1" material="floor" rgba="1 1 1 1"/>
    <camera name="front" pos="{2.5 * REACH} {-2.6 * REACH} {1.8 * REACH}" xyaxes="0.72 0.69 0 -0.2 0.21 0.957"
      fovy="36"/>
    <body name="target" mocap="true">
      <geom type="sphere" size="0.02" rgba="0.85 0.1 0.1 1"/><geom type="sphere" size="0.045" rgba="0.85 0.1 0.1 0.35"/>
    </body>"""


def _capsule(link: Link, colour: str = "") -> str:
    rgba = f' rgba="{colour}"' if colour else ""
    ends = _numbers(*link.start, *link.end)
    return f'<geom type="capsule" fromto="{ends}" size="{link.radius}" mass="{link.mass}"{rgba}/>'


def _numbers(*values: float) -> str:
    return " ".join(f"{value:.9g}" for value in values)
