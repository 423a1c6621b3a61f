"""The options of a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options of a comparison."""

    seed: int = 0
    repeat: bool = True  # call every operator twice, and compare the bits
    accumulated: bool = True  # follow whole runs in float64, float32 and float32 with weights changed by one ulp
    max_elements: int = 1 << 26  # calls with more input elements are not repeated on the CPU
    folder: str | None = None  # the folder for the script that reproduces a finding
