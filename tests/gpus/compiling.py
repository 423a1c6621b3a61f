"""Compile the kernels of recorded calls with the driver of one GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from torch_dml.cli import kernels
from torch_dml.cli.kernels import Program

from ..support.environment import ROOT

SCRIPT = ROOT / "scripts" / "other-gpus.sh"
# After so many ends of a process the rest is left out.
_MOST_ENDS = 20


@dataclass
class Compiled:
    """What became of the kernels on one GPU."""

    gpu: str
    adapter: str = ""
    programs: list[Program] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """Calls at which the process ended: a fault of the driver, or of the engine."""


def names() -> list[str]:
    """The GPUs that the script knows."""
    done = subprocess.run([str(SCRIPT), "--list"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def compile_all(gpu: str, calls: list[Path], folder: Path) -> Compiled:
    """Compile with the driver of `gpu`; what `folder` has of earlier runs is not compiled again."""
    known, fresh, log = (folder / f"{gpu}{suffix}" for suffix in (".jsonl", ".new.jsonl", ".log"))
    known.touch()
    fresh.unlink(missing_ok=True)
    found = Compiled(gpu)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "TORCH_DML_PIPELINE_STATISTICS": str(fresh),
        "TORCH_DML_KNOWN_PIPELINES": str(known),
        "TORCH_DML_CACHE_DIR": str(folder / "cache" / gpu),
        "TORCH_DML_COMPILE_THREADS": "1",
        "TORCH_DML_AUTOTUNE": "0",
        "TORCH_DML_FUSION": "0",
        "TORCH_DML_DEVICES_PER_ADAPTER": "1",
    }
    with log.open("w") as output:
        start: int | None = 0
        while start is not None:
            arguments = ["-m", "tests.gpus.replay", "--start", str(start), *map(str, calls)]
            start = _replay(command(gpu, arguments), environment, output, found)
    found.programs = kernels.read(fresh)
    # Kept for the next run, with what other calls had compiled.
    lines = [line for path in (fresh, known) for line in path.read_text("utf-8").splitlines()]
    known.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)), "utf-8")
    return found


def command(gpu: str, arguments: list[str]) -> list[str]:
    """The command that runs Python with these arguments on a GPU."""
    return [str(SCRIPT), gpu, sys.executable, *arguments]


def _replay(command: list[str], environment: dict[str, str], output: TextIO, found: Compiled) -> int | None:
    """Make the calls. Returns the call to go on with, if the process ended at one."""
    at = 0
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=output, text=True
    ) as process:
        for line in process.stdout or ():
            if line[:1].isdecimal():
                at = int(line)
            else:
                output.write(line)
            if line.startswith("{"):
                found.adapter = json.loads(line)["adapter"]
    if process.returncode == 0:
        return None
    found.ends.append(f"exit status {process.returncode} at call {at}")
    return at + 1 if at and len(found.ends) < _MOST_ENDS else None
