from __future__ import annotations

import os

# The figures of a test are small: more threads only wait for each other, above all where tests run
# side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from dml_robot import devices

torch.set_num_threads(1)


@pytest.fixture(params=["cpu", "dml"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device that trains, where this machine has it."""
    if not devices.available(request.param):
        pytest.skip(f"no device {request.param}: torch-dml is not installed, or finds no Vulkan driver")
    return torch.device(request.param)
