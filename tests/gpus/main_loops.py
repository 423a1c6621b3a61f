"""The main loops of usual products, attention and convolutions on one GPU, and why some do little
work: loops.toml.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch_dml.cli import kernels

from ..support.environment import ROOT
from .compiling import command
from .loops import Loop, main_loop

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REASONS = Path(__file__).with_name("loops.toml")
# What the page has a column for: the calls whose names start so.
SUBJECTS = {
    "product f32": "product f32 2048",
    "product f16": "product f16 2048",
    "attention f16": "attention f16",
    "convolution 3x3 f32": "convolution f32",
    "convolution 3x3 f16": "convolution f16",
}
# Intel's engines have 16 lanes from Xe2 on.
_WIDE = ("lnl", "bmg", "ptl")
# A loop with fewer multiply-adds is not one of a product.
_LEAST = 32


@dataclass(frozen=True)
class Kernel:
    """A kernel with a main loop."""

    call: str
    """The first call that needs it."""
    name: str
    subgroup_size: int | None
    loop: Loop


@dataclass
class Loops:
    """The main loops on one GPU."""

    gpu: str
    adapter: str = ""
    kernels: list[Kernel] = field(default_factory=list)
    error: str = ""
    """How the program ended, if not as it should."""

    def of(self, subject: str) -> list[Kernel]:
        """The kernels of a subject of the page, the least share of work first."""
        found = [kernel for kernel in self.kernels if kernel.call.startswith(SUBJECTS[subject])]
        return sorted(found, key=lambda kernel: kernel.loop.share)


@dataclass(frozen=True)
class Reason:
    """What stands between loops and more work."""

    gpus: re.Pattern[str]
    subjects: re.Pattern[str]
    text: str


def reasons(file: Path = REASONS) -> list[Reason]:
    """Read loops.toml. Raises KeyError or ValueError if it is not such a file."""
    entries = tomllib.loads(file.read_text("utf-8")).get("reason", [])
    return [Reason(re.compile(e["gpus"]), re.compile(e["subjects"]), e["text"]) for e in entries]


def read_loops(gpu: str, folder: Path) -> Loops:
    """Compile the calls of programs.py with the driver of `gpu`, and read what it made of them."""
    code, statistics = folder / f"{gpu}.code", folder / f"{gpu}.loops.jsonl"
    # Of a pipeline in its cache, a driver may show no machine code.
    cache = folder / "cache" / f"{gpu}.loops"
    for old in (code, cache):
        shutil.rmtree(old, ignore_errors=True)
    statistics.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "TORCH_DML_PIPELINE_STATISTICS": str(statistics),
        "TORCH_DML_PIPELINE_DISASSEMBLY": str(code),
        "TORCH_DML_CACHE_DIR": str(cache),
        "TORCH_DML_COMPILE_THREADS": "1",
        "TORCH_DML_AUTOTUNE": "0",
        "TORCH_DML_FUSION": "0",
        "TORCH_DML_DEVICES_PER_ADAPTER": "1",
    }
    done = subprocess.run(
        command(gpu, ["-m", "tests.gpus.programs"]),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = Loops(gpu)
    (folder / f"{gpu}.loops.log").write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode:
        found.error = f"exit status {done.returncode}; see {folder / gpu}.loops.log"
        return found
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    calls = {id_: line["call"] for line in reversed(lines) for id_ in line.get("kernels", ())}
    found.adapter = next((line["adapter"] for line in lines if "adapter" in line), "")
    programs = {program.id: program for program in kernels.read(statistics)}
    for file in sorted(code.glob("*.txt")):
        program = programs.get(file.stem.rpartition("-")[2])
        loop = main_loop(file.read_text("utf-8"), lanes=16 if gpu in _WIDE else 8)
        if program is None or program.id not in calls or loop is None or not _is_product(loop):
            continue
        found.kernels.append(Kernel(calls[program.id], program.kernel, program.subgroup_size, loop))
    return found


def _is_product(loop: Loop) -> bool:
    return loop.uses_matrix_units or loop.multiply_adds >= _LEAST


def listing(found: Loops) -> list[str]:
    """Lines of text: every kernel, with what its loop consists of."""
    nothing = "" if found.kernels else ": no loop with multiply-adds is found"
    lines = [f"{found.gpu}: {found.error or found.adapter}{nothing}"]
    for kernel in sorted(found.kernels, key=lambda kernel: (kernel.call, kernel.name)):
        loop = kernel.loop
        parts = ", ".join(f"{slots} {kind.value}" for kind, slots in loop.slots.most_common())
        pairs = f"; {loop.dual} in pairs" if loop.dual else ""
        lines.append(
            f"  {kernel.call}: {kernel.name}, subgroups of {kernel.subgroup_size}: {loop.share:.2f} of "
            f"{loop.slots.total()} slots, {loop.loads:.3f} loads, {loop.waits} waits ({parts}{pairs})"
        )
    return lines


def goal(gpu: str) -> float:
    """The least share of multiply-adds that products of float32 should have."""
    return 0.5 if gpu == "skl" or gpu.isdecimal() else 0.75


def below(found: Loops) -> bool:
    """Whether a product of float32 does less work than it should."""
    return any(kernel.loop.share < goal(found.gpu) for kernel in found.of("product f32"))


def reasons_for(gpu: str, subject: str, known: Sequence[Reason]) -> list[Reason]:
    """What stands between loops of a subject on a GPU and more work."""
    return [reason for reason in known if reason.gpus.fullmatch(gpu) and reason.subjects.fullmatch(subject)]
