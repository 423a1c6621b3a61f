"""A run that was stopped and resumed has the curve of an uninterrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dml_robot.errors import CheckpointError, SettingsError
from dml_robot.learn.settings import Settings
from dml_robot.learn.train import Run, begin, resume, train
from rich.console import Console

SMALL = {"parallel": 8, "horizon": 8, "batch_size": 32, "hidden": (16,), "seed": 5}
WAYS: dict[str, dict[str, Any]] = {
    "device": {**SMALL, "sim": "batched", "steps": 6 * 64},
    "overlapped": {**SMALL, "sim": "mujoco", "steps": 6 * 64},
    "sb3-ppo": {**SMALL, "sim": "mujoco", "way": "sb3", "steps": 6 * 64},
    "sb3-sac": {**SMALL, "sim": "mujoco", "algorithm": "sac", "steps": 4 * 1024},
    "sb3-td3": {**SMALL, "sim": "batched", "algorithm": "td3", "steps": 4 * 1024},
}
TIMED = ("seconds", "steps_per_second")


def curve(run: Run) -> list[dict[str, float]]:
    return [{name: value for name, value in row.items() if name not in TIMED} for row in run.rows]


def resumed_equals_uninterrupted(settings: Settings, folder: Path) -> None:
    quiet = Console(quiet=True)
    whole = begin(settings, folder / "whole")
    train(whole, quiet)
    half = begin(settings, folder / "half")
    train(half, quiet, watch=lambda run: run.trainer.steps >= settings.checked().steps // 2)  # type: ignore[operator]
    assert half.trainer.steps < whole.trainer.steps
    again = resume(half.path)
    train(again, quiet)
    assert curve(again) == curve(whole)
    assert str(again.trainer.policy().describe()) == str(whole.trainer.policy().describe())
    assert (folder / "half" / "curve.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_is_the_uninterrupted_one(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if way in ("sb3-sac", "sb3-td3"):
        # Few enough that both random actions and learning occur before and after the interruption.
        from dml_robot.learn import sb3

        monkeypatch.setattr(sb3, "LEARNING_STARTS", 128)
        monkeypatch.setattr(sb3, "OFF_POLICY_STEPS", 64)
        settings = Settings(**{**WAYS[way], "steps": 4 * 64})
    else:
        settings = Settings(**WAYS[way])
    resumed_equals_uninterrupted(settings, tmp_path)


@pytest.mark.parametrize("way", ["device", "overlapped"])
def test_a_resumed_run_is_the_uninterrupted_one_on_a_device(way: str, tmp_path: Path, device: Any):
    resumed_equals_uninterrupted(Settings(**WAYS[way], device=str(device)), tmp_path)


def test_what_may_change_and_what_may_not(tmp_path: Path):
    run = begin(Settings(**{**WAYS["device"], "steps": 64}), tmp_path)
    train(run, Console(quiet=True))
    longer = resume(run.path, changes={"steps": 128})
    train(longer, Console(quiet=True))
    assert longer.trainer.steps == 128 and len(longer.rows) == 2
    with pytest.raises(SettingsError, match="parallel 8, which cannot become 16"):
        resume(run.path, changes={"parallel": 16})


def test_a_policy_alone_is_no_run(tmp_path: Path):
    from dml_robot.learn import checkpoint

    checkpoint.write(tmp_path / "policy.pt", {"policy": {}})
    with pytest.raises(CheckpointError, match="not a run to go on with"):
        resume(tmp_path / "policy.pt")
