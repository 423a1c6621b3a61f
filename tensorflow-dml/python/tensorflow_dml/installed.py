"""Which TensorFlow is installed, and whether the device works with it."""

from __future__ import annotations

import re
from importlib import metadata
from typing import NamedTuple

FIRST = (2, 22)
HOW = 'pip install --upgrade "tensorflow-cpu>=2.22.0rc0"'
_DISTRIBUTIONS = ("tensorflow-cpu", "tensorflow", "tensorflow-intel", "tf-nightly-cpu", "tf-nightly", "tensorflow-rocm")


class TensorFlow(NamedTuple):
    """A distribution of TensorFlow."""

    distribution: str
    version: str


def find() -> list[TensorFlow]:
    """Return the distributions of TensorFlow that are installed."""
    found = []
    for name in _DISTRIBUTIONS:
        try:
            found.append(TensorFlow(name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


def complaint(found: list[TensorFlow]) -> str | None:
    """Return why the device does not work with what is installed, and what to do; None if it
    does.
    """
    if not found:
        return f"TensorFlow is not installed: {HOW}"
    for tensorflow in found:
        numbers = re.match(r"(\d+)\.(\d+)", tensorflow.version)
        if numbers and (int(numbers[1]), int(numbers[2])) < FIRST:
            return (
                f"{tensorflow.distribution} {tensorflow.version} lacks the C functions that update variables, "
                f"which 2.22 has: {HOW}"
            )
    return None
