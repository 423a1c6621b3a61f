"""Every way trains on the device alone: no operator falls back to the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from dml_robot import devices
from dml_robot.learn.settings import Settings
from dml_robot.learn.train import begin, train
from rich.console import Console
from test_resume import WAYS


@pytest.mark.parametrize("way", WAYS)
def test_nothing_falls_back(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not devices.available("dml"):
        pytest.skip("torch-dml is not installed, or finds no Vulkan driver")
    if way in ("sb3-sac", "sb3-td3"):
        from dml_robot.learn import sb3

        monkeypatch.setattr(sb3, "LEARNING_STARTS", 32)
        monkeypatch.setattr(sb3, "OFF_POLICY_STEPS", 32)
    place = torch.device("dml")
    before = devices.fallbacks(place)
    run = begin(Settings(**{**WAYS[way], "steps": 128, "device": "dml"}), tmp_path)
    train(run, Console(quiet=True))
    assert run.trainer.steps >= 128 and devices.fallbacks(place) == before


def test_the_processor_has_no_share_of_a_gpu() -> None:
    assert devices.busy(torch.device("cpu")) is None
