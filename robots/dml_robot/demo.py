"""Demonstrations of a policy: recorded off-screen to MP4 and PNG, or shown in MuJoCo's viewer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .checks import whole
from .errors import MissingDependencyError, RenderError, SettingsError
from .evaluate import Actor
from .render import Frame, Scenes, render
from .sim import make
from .task import ANGLES, TARGET, Observer, ReachTask

PAUSE = 0.4
"""Seconds for which the last frame of an episode is shown."""

SIZE = (640, 480)
"""Width and height in pixels."""

MOST = (1920, 1080)
"""Maximum width and height in pixels."""


@dataclass(frozen=True)
class Recording:
    """A recording's properties.

    Args:
        renderer: readable name of the renderer.
        episodes: number of episodes.
        successes: number of episodes in which the tool reached the target and stayed.
        frames: number of frames in the video.
        seconds: length of the video.
    """

    renderer: str
    episodes: int
    successes: int
    frames: int
    seconds: float


class _Moment(NamedTuple):
    """The arm's state at the end of a period."""

    angles: NDArray[np.float64]
    target: NDArray[np.float64]
    ended: bool
    success: bool


def record(
    policy: Actor,
    *,
    video: Path | None = None,
    image: Path | None = None,
    episodes: int = 4,
    seed: int = 0,
    size: tuple[int, int] = SIZE,
) -> Recording:
    """Run a policy in MuJoCo and draw it; needs no display.

    Args:
        policy: the policy to run.
        video: an MP4 file to write, at the speed of the real arm.
        image: a PNG file to write, of the end of the first episode that succeeds (of the last one
            if none does).
        episodes: number of episodes.
        seed: of the targets.
        size: width and height in pixels, even numbers.

    Raises:
        SettingsError: for arguments out of range.
        RenderError: if no renderer works here, or a file cannot be written.
    """
    _check(episodes, size, video, image)
    moments = list(_episodes(policy, episodes, seed))
    ends = [index for index, moment in enumerate(moments) if moment.ended]
    won = [index for index in ends if moments[index].success]
    rate = 1 / ReachTask().period
    if video is None:
        moments = [moments[won[0] if won else ends[-1]]]
        shown = 0
    else:
        pause = round(PAUSE * rate)
        moments = [moment for one in moments for moment in [one] * (1 + pause * one.ended)]
        shown = next(index for index, one in enumerate(moments) if one.ended and (one.success or not won))
    scenes = Scenes(np.stack([one.angles for one in moments]), np.stack([one.target for one in moments]))
    renderer, pictures = render(scenes, size)
    if image is not None:
        pictures = _saving(pictures, image, shown)
    if video is None:
        for _ in pictures:
            pass
    else:
        _write_video(pictures, video, size, rate)
    return Recording(renderer, episodes, len(won), len(moments), len(moments) / rate)


def view(policy: Actor, *, episodes: int | None = None, seed: int = 0) -> None:
    """Show a policy in MuJoCo's viewer, at the speed of the real arm, until its window is closed.

    Args:
        policy: the policy to run.
        episodes: number of episodes; endless if None.
        seed: of the targets.

    Raises:
        SettingsError: if `episodes` is less than 1.
        RenderError: if there is no display.
    """
    if episodes is not None:
        _check(episodes, SIZE, None, None)
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise RenderError("there is no display to show the arm on; record it instead, which needs none: --save-video")
    import mujoco
    import mujoco.viewer

    from .arm.mjcf import document

    model = mujoco.MjModel.from_xml_string(document(scene=True))
    data = mujoco.MjData(model)
    period = ReachTask().period
    try:
        window = mujoco.viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False)
    except Exception as error:  # errors of GLFW and of the platform have no common type
        raise RenderError(f"the viewer does not open: {error}") from error
    with window:
        due = time.monotonic()
        for moment in _episodes(policy, episodes, seed):
            if not window.is_running():
                return
            data.qpos[:], data.mocap_pos[0] = moment.angles, moment.target
            mujoco.mj_forward(model, data)
            window.sync()
            due += period + PAUSE * moment.ended
            time.sleep(max(0.0, due - time.monotonic()))


def _episodes(policy: Actor, episodes: int | None, seed: int) -> Iterator[_Moment]:
    """Yield the states of one arm in MuJoCo, episode after episode."""
    arms, observer = make("mujoco", 1, seed=seed, as_torch="cpu", threads=1), Observer()
    try:
        observation, _ = arms.reset(seed=seed)
        while episodes is None or episodes > 0:
            observation, _, terminated, truncated, info = arms.step(torch.as_tensor(policy.act(observation)))
            last = observer.state(info["final_obs"])[0].double().numpy()
            ended = bool(terminated[0] or truncated[0])
            yield _Moment(last[ANGLES], last[TARGET], ended, bool(terminated[0]))
            if episodes is not None:
                episodes -= ended
    finally:
        arms.close()


def _check(episodes: int, size: tuple[int, int], *files: Path | None) -> None:
    whole("the number of episodes", episodes, 1)
    if any(side < 64 or side > most or side % 2 for side, most in zip(size, MOST, strict=True)):
        raise SettingsError(
            f"a size is two even numbers from 64 to {MOST[0]} and {MOST[1]}, not {size[0]} and {size[1]}"
        )
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise SettingsError(f"the folder of {file} does not exist")


def _saving(pictures: Iterator[Frame], file: Path, index: int) -> Iterator[Frame]:
    """Yield the pictures unchanged, and write the one with index `index` as PNG."""
    for number, picture in enumerate(pictures):
        if number == index:
            from PIL import Image

            unfinished = file.with_name(f".{file.name}.part")
            try:
                Image.fromarray(picture).save(unfinished, format="png")
                unfinished.replace(file)
            except OSError as error:
                unfinished.unlink(missing_ok=True)
                raise RenderError(f"{file} cannot be written: {error.strerror or error}") from error
        yield picture


def _write_video(pictures: Iterator[Frame], file: Path, size: tuple[int, int], rate: float) -> None:
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError as error:
        raise MissingDependencyError("a video needs ffmpeg: pip install imageio-ffmpeg") from error
    # A video is complete or absent: an interrupted recording leaves no file that does not play.
    unfinished = file.with_name(f".{file.name}.part")
    options = ["-f", "mp4", "-movflags", "+faststart"]
    writer = imageio_ffmpeg.write_frames(
        str(unfinished),
        size,
        fps=rate,
        codec="libx264",
        macro_block_size=2,
        output_params=options,
        ffmpeg_log_level="error",
    )
    try:
        writer.send(None)
        for picture in pictures:
            writer.send(np.ascontiguousarray(picture))
        writer.close()
        unfinished.replace(file)
    except OSError as error:
        raise RenderError(f"{file} cannot be written: {str(error).strip().splitlines()[0]}") from error
    finally:
        writer.close()
        unfinished.unlink(missing_ok=True)
