from __future__ import annotations

import os

# Tests are small: more threads only wait for each other, above all if tests run in parallel.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from dml_robot import devices

torch.set_num_threads(1)


@pytest.fixture(params=["cpu", "dml"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device for training that this machine has."""
    if not devices.available(request.param):
        pytest.skip(f"no device {request.param}: torch-dml is not installed, or finds no Vulkan driver")
    return torch.device(request.param)
