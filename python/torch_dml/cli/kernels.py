"""`kernels`: what drivers' compilers made of the kernels, from a file that
TORCH_DML_PIPELINE_STATISTICS names, and what of them was executed, from the file of counts that
tools/radeon-player writes. Works without torch.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from torch_dml.cli import kernel_model

_WIDTH = 132

# Kinds of executed instructions, as the file of counts has them.
_KINDS = (
    "multiply_add",
    "vector",
    "transcendental",
    "quarter",
    "double",
    "matrix",
    "scalar",
    "scalar_memory",
    "vector_memory",
    "shared",
    "wait",
    "branch",
    "barrier",
)

# Each figure by the names that drivers give it: RADV (AMD), ANV (Intel), turnip (Qualcomm), NVK and
# NVIDIA's own.
_NAMES = {
    "registers": (
        "VGPRs",
        "GRF registers",
        "Max live registers",
        "Registers used",
        "Number of GPRs",
        "Register Count",
    ),
    "spills": ("Spilled VGPRs", "Spills", "Spill Count", "STP Count", "Spills to memory"),
    "fills": ("Fills", "Fill Count", "LDP Count", "Fills from memory"),
    "scratch": ("Scratch size", "Scratch Memory Size", "SLM size", "Stack Size"),
    "shared": ("LDS size", "Workgroup Memory Size", "Shared Memory Size"),
    "waves": ("Subgroups per SIMD", "Max Waves Per Core", "Max warps/SM"),
    "instructions": ("Instructions", "Instruction Count", "Instruction count"),
    "cycles": ("Latency", "Cycles", "Cycle Count", "Static cycle count"),
}


@dataclass(frozen=True)
class Ran:
    """What was executed of a program, in instructions of waves."""

    launches: int = 0
    waves: int = 0
    instructions: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    pairs: int = 0
    """Pairs of vector instructions that are issued as one."""
    bank_conflicts: int = 0
    """Cycles that accesses to shared memory take beyond the first, for lanes that meet in a bank."""
    bytes_loaded: int = 0
    bytes_stored: int = 0

    def __add__(self, other: Ran) -> Ran:
        """Of both together."""
        return Ran(
            kinds={name: self.kinds.get(name, 0) + other.kinds.get(name, 0) for name in _KINDS},
            **{name: getattr(self, name) + getattr(other, name) for name in _COUNTS},
        )


_COUNTS = ("launches", "waves", "instructions", "pairs", "bank_conflicts", "bytes_loaded", "bytes_stored")


@dataclass(frozen=True)
class Program:
    """What a compiler made of a kernel, for one subgroup size. A figure that the driver does not
    report is None.
    """

    adapter: str
    driver: str
    kernel: str
    source: str
    """The Rust type of the specialisation, with its modules."""
    specialisation: str
    id: str
    """The hash of the kernel's content."""
    workgroup: tuple[int, ...]
    """Invocations of a workgroup."""
    milliseconds: float
    """The compiler's time, for all of the kernel's programs."""
    error: str | None = None
    """Why the driver refused the kernel."""
    subgroup_size: int | None = None
    registers: int | None = None
    """Vector registers, in the GPU's own units."""
    spills: int | None = None
    """Registers, or stores of registers, that go to memory."""
    fills: int | None = None
    """Loads of spilled registers."""
    scratch: int | None = None
    """Bytes of private memory."""
    shared: int | None = None
    """Bytes of shared memory of a workgroup."""
    waves: int | None = None
    """Subgroups that fit into a compute unit, or a part of it, at a time."""
    instructions: int | None = None
    cycles: int | None = None
    """The compiler's estimate."""
    hash: int | None = None
    """What the driver names the machine code by."""
    ran: Ran | None = None
    """What was executed, where the file of counts has it."""

    @property
    def badness(self) -> tuple[bool, int, int, int]:
        """What programs are sorted by, the worst first."""
        return (self.error is not None, self.spills or 0, self.scratch or 0, self.instructions or 0)


def run(
    file: str, *, rows: int, select: str | None, as_json: bool, counts: str | None = None, model: str | None = None
) -> int:
    """Print the programs of a file, and return the exit status: 1 if a driver refused a kernel.

    Raises `RuntimeError` if a file cannot be read, or a model lacks counts.
    """
    if model is not None and counts is None:
        raise RuntimeError("--model needs --counts")
    found = [program for program in read(Path(file)) if select is None or select in program.kernel]
    predictions: list[kernel_model.Prediction] = []
    if counts is not None:
        ran = read_counts(Path(counts))
        found = [replace(program, ran=ran.get(program.hash)) for program in found]
    if counts is not None and model is not None:
        gpu = kernel_model.GPUS[model]
        hashes = {program.hash for program in found}
        launches = kernel_model.read(Path(counts))
        predictions = [kernel_model.predict(launch, gpu) for launch in launches if launch.code in hashes]
    found.sort(key=lambda program: program.badness, reverse=True)
    if as_json:
        print(json.dumps([_as_json(program, predictions) for program in found], indent=2))
    else:
        console = Console()
        # In a narrow window the lines of a whole table are wrapped, as `devices` does.
        console.width = max(console.width, _WIDTH if counts is None else _WIDTH + 20)
        console.print(_table(found[:rows]))
        if len(found) > rows:
            console.print(f"{len(found) - rows} more: --rows {len(found)}")
        if counts is not None:
            console.print(_table_of_counts(found, rows))
        if model is not None:
            names = {program.hash: program.kernel for program in found}
            console.print(kernel_model.table(predictions, names, kernel_model.GPUS[model], rows))
        for program in found:
            if program.error is not None:
                console.print(f"{program.kernel} ({program.specialisation}): {program.error}", markup=False)
        for adapter in sorted({program.adapter for program in found}):
            console.print(summary([program for program in found if program.adapter == adapter]), markup=False)
    return int(any(program.error is not None for program in found))


def _as_json(program: Program, predictions: Sequence[kernel_model.Prediction]) -> dict[str, Any]:
    predicted = [it.as_json() for it in predictions if it.code == program.hash]
    return {**asdict(program), **({"predicted": predicted} if predictions else {})}


def read(file: Path) -> list[Program]:
    """Read the programs of a file, once each however often they were compiled.

    Raises `RuntimeError` if the file cannot be read or a line is not such a pipeline's.
    """
    found: dict[tuple[str, str, int], Program] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"{file}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            programs = _programs(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RuntimeError(f"{file}, line {number}: not a line of TORCH_DML_PIPELINE_STATISTICS") from error
        for i, program in enumerate(programs):
            found.setdefault((program.adapter, program.id, i), program)
    return list(found.values())


def read_counts(file: Path) -> dict[int | None, Ran]:
    """Read what was executed, of all lines with the same machine code together.

    Raises `RuntimeError` if the file cannot be read or a line is not such a kernel's.
    """
    found: dict[int | None, Ran] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"{file}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            counted: dict[str, Any] = json.loads(line)
            ran = Ran(
                kinds={name: int(counted[name]) for name in _KINDS}, **{name: int(counted[name]) for name in _COUNTS}
            )
            found[counted["code"]] = found.get(counted["code"], Ran()) + ran
        except (ValueError, TypeError, KeyError) as error:
            raise RuntimeError(f"{file}, line {number}: not a line of RADEON_PLAYER_COUNTS") from error
    return found


def _programs(line: dict[str, Any]) -> list[Program]:
    kernel = Program(
        adapter=line["adapter"],
        driver=line.get("driver") or "",
        kernel=line["kernel"],
        source=line.get("source") or "",
        specialisation=line["specialisation"] or "",
        id=line["id"],
        workgroup=tuple(line["workgroup"]),
        milliseconds=line["milliseconds"],
        error=line.get("error"),
    )
    # A driver that reports nothing has kernels all the same.
    return [_with_figures(kernel, executable) for executable in line.get("executables", ())] or [kernel]


def _with_figures(kernel: Program, executable: dict[str, Any]) -> Program:
    reported: dict[str, float] = executable["statistics"]

    def figure(names: Sequence[str]) -> int | None:
        numbers = [int(reported[name]) for name in names if name in reported]
        # Intel's drivers report 0 registers where the count is not variable.
        return next((number for number in numbers if number), numbers[0] if numbers else None)

    figures = {name: figure(names) for name, names in _NAMES.items()}
    # RADV's, a number of 32 bits; those of other drivers mean nothing here.
    code = {"hash": int(reported["Hash"])} if "Hash" in reported else {}
    return Program(**{**asdict(kernel), **figures, **code, "subgroup_size": executable["subgroup_size"] or None})


def summary(programs: Sequence[Program]) -> str:
    """Describe the programs of one adapter in a line."""
    spilling = [program for program in programs if program.spills]
    parts = [f"{programs[0].adapter}: {len({program.id for program in programs})} kernels"]
    if all(program.spills is None for program in programs):
        parts.append("the driver does not report spills")
    else:
        worst = max(spilling, key=lambda program: program.spills or 0, default=None)
        parts.append(f"{len(spilling)} spill" + (f" (worst: {worst.spills} in {worst.kernel})" if worst else ""))
    if waves := _reported(program.waves for program in programs):
        parts.append(f"waves at least {min(waves)}, {statistics.median_low(waves)} at the median")
    if instructions := _reported(program.instructions for program in programs):
        parts.append(f"longest {max(instructions):,} instructions")
    if refused := sum(program.error is not None for program in programs):
        parts.append(f"{refused} refused")
    return ", ".join(parts)


def _reported(figures: Iterable[int | None]) -> list[int]:
    return [figure for figure in figures if figure is not None]


def _table(programs: Sequence[Program]) -> Table:
    table = Table(title="Kernels, the worst first", title_justify="left")
    table.add_column("kernel", overflow="fold")
    figures = ("subgroup_size", *_NAMES)
    for figure in figures:
        table.add_column(figure.replace("_size", ""), justify="right", no_wrap=True)
    table.add_column("workgroup", no_wrap=True)
    table.add_column("id", no_wrap=True)
    for program in programs:
        numbers = (getattr(program, figure) for figure in figures)
        table.add_row(
            program.kernel,
            *("" if number is None else f"{number:,}" for number in numbers),
            "x".join(map(str, program.workgroup)),
            program.id[:8],
        )
    return table


# Columns of the table, and the kinds that each has the sum of.
_COLUMNS = {
    "fma": ("multiply_add",),
    "vector": ("vector", "double"),
    "special": ("transcendental", "quarter"),
    "matrix": ("matrix",),
    "scalar": ("scalar", "scalar_memory"),
    "memory": ("vector_memory",),
    "shared": ("shared",),
    "waits": ("wait", "barrier"),
    "branches": ("branch",),
}


def _table_of_counts(programs: Sequence[Program], rows: int) -> Table:
    table = Table(title="What was executed, by instructions of waves", title_justify="left")
    table.add_column("kernel", overflow="fold")
    for name in ("launches", "all", *_COLUMNS, "pairs", "conflicts"):
        table.add_column(name, justify="right", no_wrap=True)
    ran = [(program, program.ran) for program in programs if program.ran is not None]
    for program, counts in sorted(ran, key=lambda item: item[1].instructions, reverse=True)[:rows]:
        sums = [sum(counts.kinds[kind] for kind in kinds) for kinds in _COLUMNS.values()]
        numbers = (counts.launches, counts.instructions, *sums, counts.pairs, counts.bank_conflicts)
        table.add_row(program.kernel, *(f"{number:,}" for number in numbers))
    return table
