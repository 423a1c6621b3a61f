"""Spills that are explained: known.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_dml.cli.kernels import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("known.toml")


@dataclass(frozen=True)
class Known:
    """Kernels that may spill on some GPUs, and why."""

    kernel: re.Pattern[str]
    """Matches the start of the kernel's name."""
    gpus: re.Pattern[str]
    """Matches the whole name of the GPU."""
    spills: int
    """The most spills that are explained."""
    reason: str
    specialisation: re.Pattern[str] = re.compile("")
    """Matches somewhere in the specialisation."""

    def explains(self, gpu: str, program: Program) -> bool:
        """Whether a kernel's spills on a GPU are these."""
        fits = self.kernel.match(program.kernel) and self.specialisation.search(program.specialisation)
        return bool(fits and self.gpus.fullmatch(gpu)) and (program.spills or 0) <= self.spills


def read(file: Path = FILE) -> list[Known]:
    """Read the file. Raises ValueError if it is not such a file."""
    entries = tomllib.loads(file.read_text("utf-8")).get("known", [])
    return [
        Known(
            re.compile(e["kernel"]),
            re.compile(e["gpus"]),
            int(e["spills"]),
            e["reason"],
            re.compile(e.get("specialisation", "")),
        )
        for e in entries
    ]


def unexplained(gpu: str, programs: Sequence[Program], known: Sequence[Known]) -> list[Program]:
    """Kernels that the driver refused, or that spill without a reason."""
    return [
        program
        for program in programs
        if program.error is not None or (program.spills and not any(entry.explains(gpu, program) for entry in known))
    ]
