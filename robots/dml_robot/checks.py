"""Checks of arguments that several functions take."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .errors import DeviceError, SettingsError

MAX_SEED = 2**63 - 1
"""The highest seed: a generator's is 64 bits wide, with a sign."""


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as an int; raise SettingsError if it is no whole number from `least` to
    `most`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingsError(f"{name} must be a whole number from {least} on, not {value!r}")
    if most is not None and value > most:
        raise SettingsError(f"{name} must be a whole number up to {most}, not {value!r}")
    return int(value)


def device(value: torch.device | str) -> torch.device:
    """Return the device; raise SettingsError if it has no such name, and DeviceError if it is not
    there.
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
