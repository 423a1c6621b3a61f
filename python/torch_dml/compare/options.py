"""What a comparison can be told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How to compare."""

    seed: int = 0
    repeat: bool = True  # call every operator twice, and compare the bits
    accumulated: bool = True  # follow whole runs in float64, float32 and float32 with weights changed by one ulp
    max_elements: int = 1 << 26  # calls with more input elements are not repeated on the CPU
    folder: str | None = None  # where the script that reproduces a finding goes
