"""Pictures of the arm, on a machine with or without a display.

MuJoCo chooses its way to OpenGL when it is imported, and a driver that fails may crash the process.
So a separate process draws, trying one way after the other until one works: EGL (a GPU's driver, or
Mesa's on the processor), OSMesa (Mesa's, without EGL), GLFW (a display). If none does, matplotlib
draws the arm as lines.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arm.description import JOINTS_COUNT, REACH
from .errors import RenderError

Frame = NDArray[np.uint8]
"""(height, width, 3) red, green and blue."""

INSTALL = "apt-get install libegl1 libopengl0 libgl1-mesa-dri (EGL), or libosmesa6 (OSMesa)"
"""Packages for a machine without OpenGL: each of the two is enough on a bare Debian 12."""


@dataclass(frozen=True)
class Scenes:
    """The scenes to draw, one row per picture.

    Args:
        angles: (F, 6) of the joints, radians.
        targets: (F, 3) metres.
    """

    angles: NDArray[np.float64]
    targets: NDArray[np.float64]


def ways() -> tuple[str, ...]:
    """Return the values of MUJOCO_GL to try, in order; only the environment's value if it is
    set.
    """
    chosen = os.environ.get("MUJOCO_GL")
    if chosen:
        return (chosen,)
    return ("egl", "osmesa", "glfw") if sys.platform == "linux" else ("",)


def render(scenes: Scenes, size: tuple[int, int], lines: bool = True) -> tuple[str, Iterator[Frame]]:
    """Return the renderer's name, and the pictures as they are drawn.

    Args:
        scenes: the scenes to draw.
        size: width and height in pixels.
        lines: whether matplotlib draws if OpenGL cannot.

    Raises:
        RenderError: if no renderer works; also during the iteration, if the renderer stops.
    """
    reasons = []
    for way in ways():
        pictures = _drawn_by(way, scenes, size)
        try:
            first = next(pictures)
        except RenderError as error:
            reasons.append(f"{way or 'the system'}: {error}")
            continue
        return f"MuJoCo ({way or 'the system'})", _with_first(first, pictures)
    if lines:
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError:
            reasons.append("matplotlib: not installed")
        else:
            return "matplotlib, as OpenGL does not work here: " + INSTALL, _lines(scenes, size)
    raise RenderError(f"nothing can draw here ({'; '.join(reasons)}); {INSTALL}, or pip install matplotlib")


def _with_first(first: Frame, rest: Iterator[Frame]) -> Iterator[Frame]:
    yield first
    yield from rest


def _drawn_by(way: str, scenes: Scenes, size: tuple[int, int]) -> Iterator[Frame]:
    width, height = size
    environment = {**os.environ, "MUJOCO_GL": way}
    environment.pop("PYOPENGL_PLATFORM", None)  # MuJoCo sets the value for its way
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "errors", "w+") as errors:
        file = Path(folder) / "scenes.npz"
        np.savez(file, angles=scenes.angles, targets=scenes.targets)
        command = [sys.executable, "-m", "dml_robot.render", str(file), str(width), str(height)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        assert process.stdout is not None
        try:
            for _ in scenes.angles:
                data = process.stdout.read(width * height * 3)
                if len(data) < width * height * 3:
                    process.wait()
                    errors.seek(0)
                    said = [line.strip() for line in errors.read().splitlines() if line.strip()]
                    raise RenderError(said[-1] if said else f"the process that draws ended with {process.returncode}")
                yield np.frombuffer(data, np.uint8).reshape(height, width, 3)
        finally:
            process.stdout.close()
            process.kill()
            process.wait()


def _lines(scenes: Scenes, size: tuple[int, int]) -> Iterator[Frame]:
    """Draw the arm as lines between its joints, in matplotlib's 3-D axes."""
    import torch
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .arm.kinematics import point

    angles = torch.from_numpy(scenes.angles)
    joints = [torch.zeros(len(angles), 3, dtype=angles.dtype)]
    joints += [point(angles, index, (0.0, 0.0, 0.0)) for index in range(JOINTS_COUNT)]
    ways = torch.stack(joints, dim=1).numpy()  # (F, 7, 3)
    figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot(projection="3d")
    for way, target in zip(ways, scenes.targets, strict=True):
        axes.clear()
        axes.plot(*way.T, color="goldenrod", linewidth=6, marker="o", markersize=7, solid_capstyle="round")
        axes.scatter(*target, color="crimson", s=60)
        axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), zlim=(0, 1.5 * REACH))
        axes.set_box_aspect((2, 2, 1.5))
        canvas.draw()
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _draw(file: str, width: int, height: int) -> None:
    """The drawing process: writes the pictures' bytes to its output."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # drivers may print, which must not mix with the pictures
    import mujoco

    from .arm.mjcf import document

    scenes = np.load(file)
    model = mujoco.MjModel.from_xml_string(document(scene=True))
    data = mujoco.MjData(model)
    renderer = mujoco.Renderer(model, height, width)
    for angles, target in zip(scenes["angles"], scenes["targets"], strict=True):
        data.qpos[:], data.mocap_pos[0] = angles, target
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera="front")
        output.write(renderer.render().tobytes())
        output.flush()
    output.close()
    os._exit(0)  # some drivers fail when they are unloaded, after everything is done


if __name__ == "__main__":
    _draw(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
