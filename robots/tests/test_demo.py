"""Demonstrations: recordings, renderers, and the message when no renderer works."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from dml_robot import demo, render
from dml_robot.errors import RenderError, SettingsError
from PIL import Image

SIZE = (160, 120)


class Swing:
    """Turns joints back and forth, far enough to be visible."""

    def act(self, observation: Any) -> Any:
        return -observation[:, :6].sign()


def pictures(video: Path) -> np.ndarray[Any, Any]:
    """Return (F, height, width, 3) pictures of a video."""
    reader = imageio_ffmpeg.read_frames(str(video))
    width, height = next(reader)["size"]
    return np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader])


@pytest.fixture
def only_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which OpenGL does not work."""
    monkeypatch.setattr(render, "ways", lambda: ("nothing",))


def test_a_video_and_an_image_without_a_display(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    video, image = tmp_path / "arm.mp4", tmp_path / "arm.png"
    made = demo.record(Swing(), video=video, image=image, episodes=1, size=SIZE)
    if not made.renderer.startswith("MuJoCo"):  # drawn all the same, and the renderer is named
        assert render.INSTALL in made.renderer
    frames = pictures(video)
    assert frames.shape == (made.frames, SIZE[1], SIZE[0], 3)
    assert made.frames == round(made.seconds * 20) > 60
    assert frames.std() > 10
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 50  # the arm moved
    assert Image.open(image).size == SIZE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arm.mp4", "arm.png"]


def test_lines_where_opengl_does_not_work(tmp_path: Path, only_lines: None) -> None:
    image = tmp_path / "arm.png"
    made = demo.record(Swing(), image=image, episodes=1, size=SIZE)
    assert made.renderer.startswith("matplotlib") and "libegl1" in made.renderer
    assert np.asarray(Image.open(image)).std() > 5


def test_where_nothing_can_draw_it_is_said_what_to_install(
    tmp_path: Path, only_lines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(RenderError, match="apt-get install libegl1") as caught:
        demo.record(Swing(), video=tmp_path / "arm.mp4", episodes=1, size=SIZE)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, only_lines: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(RenderError, match="cannot be written: No space left on device"):
        demo.record(Swing(), image=tmp_path / "arm.png", episodes=1, size=SIZE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "number of episodes"),
        ({"size": (161, 120)}, "even numbers"),
        ({"size": (4000, 2000)}, "even numbers"),
        ({"video": Path("/nowhere/arm.mp4")}, "folder of /nowhere/arm.mp4 does not exist"),
    ],
)
def test_wrong_settings_have_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        demo.record(Swing(), **settings)


def test_the_viewer_needs_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RenderError, match="no display"):
        demo.view(Swing())
