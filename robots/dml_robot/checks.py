"""Checks of arguments, shared by several functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .errors import DeviceError, SettingsError

MAX_SEED = 2**63 - 1
"""The highest seed: seeds of generators are signed 64-bit integers."""


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as an int; raise SettingsError unless it is an integer from `least` to
    `most`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingsError(f"{name} must be a whole number from {least} on, not {value!r}")
    if most is not None and value > most:
        raise SettingsError(f"{name} must be a whole number up to {most}, not {value!r}")
    return int(value)


def device(value: torch.device | str) -> torch.device:
    """Return the device; raise SettingsError if the name is invalid, and DeviceError if the device
    is missing.
    """
    try:
        found = torch.device(value) if isinstance(value, torch.device | str) else None
    except RuntimeError:
        found = None
    if found is None:
        raise SettingsError(f"no device is called {value!r}")
    try:
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"there is no device {found} here: {str(error).strip().splitlines()[0].split('. ')[0]}"
        ) from error
    return found
