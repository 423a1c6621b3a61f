"""Entries of files of known differences that apply to a version of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def number(version: str) -> tuple[int, ...]:
    """(2, 14) for "2.14.1" and "2.14"."""
    return tuple(int(part) for part in version.split(".")[:2])


def holds(entry: Mapping[str, Any], torch: str) -> bool:
    """Whether an entry applies to this version, by its `from_torch` and `before_torch`, if it has
    them.
    """
    now = number(torch)
    return ("from_torch" not in entry or now >= number(entry["from_torch"])) and (
        "before_torch" not in entry or now < number(entry["before_torch"])
    )
