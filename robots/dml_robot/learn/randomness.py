"""The state of a device's default generator, saved and restored for resuming a run."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def seed(device: torch.device, number: int) -> None:
    """Seed the CPU's generator, with which networks are initialised, and the device's."""
    torch.manual_seed(number)
    if device.type != "cpu":
        _module(device).manual_seed(number)


def state(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the CPU's generator and the device's."""
    found = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        found[device.type] = _module(device).get_rng_state(device)
    return found


def restore(device: torch.device, found: dict[str, Tensor]) -> None:
    """Restore the states of `state`. If they are from a device of another type, the device's
    generator keeps its seed.
    """
    torch.set_rng_state(found["cpu"])
    if device.type in found and device.type != "cpu":
        _module(device).set_rng_state(found[device.type], device)


def _module(device: torch.device) -> Any:
    return getattr(torch, device.type)
