"""A model of the time of kernels on Radeon GPUs that nobody has at hand, from what
tools/radeon-player counted while it executed their machine code. Works without torch.

A launch takes as long as what takes longest of it: one of the GPU's units, one level of its memory,
or the latencies of a workgroup as often as workgroups follow each other.
docs/design/radeon-player.md has the assumptions, and how far from published figures they lead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from rich.table import Table

_BLOCK = 64
"""Bytes of a block of memory, as the player counts them."""


@dataclass(frozen=True)
class Gpu:
    """What a time follows from. Cycles are those of the shaders' clock."""

    name: str
    compute_units: int
    clock: float
    """Hertz."""
    registers: int
    """Vector registers of a SIMD, in waves of 32."""
    granule: int
    """Vector registers are given out in multiples of so many, in waves of 32."""
    l2_bytes: float
    l2_rate: float
    """Bytes a cycle."""
    cache_bytes: float
    """Of the Infinity Cache."""
    cache_rate: float
    """Bytes a second."""
    memory_rate: float
    """Bytes a second."""


# Of the memory's rate so much is reached: clpeak reads 478 GB/s of the 512 of an RX 6900 XT
# (https://github.com/krrishnarraj/clpeak/issues/102).
_REACHED = 0.93

GPUS = {
    "navi31": Gpu(
        name="RX 7900 XTX",
        compute_units=96,  # https://github.com/ilya-zlobintsev/LACT/pull/533
        clock=2.5e9,  # AMD's boost clock, https://videocardz.com/newz/alleged-amd-navi-31-gpu-block-diagram-leaks-out
        registers=1536,  # 192 KB, https://wccftech.com/amd-rdna-3-navi-3x-gpus-feature-double-the-cache-per-compute-unit-shader-array/
        granule=24,  # in such steps the driver gives them out
        l2_bytes=6 << 20,  # LACT, as above
        l2_rate=24 * 128,  # assumed: a line of each of the 24 slices of 256 KiB
        cache_bytes=96 << 20,  # LACT, as above
        cache_rate=3.5e12,  # AMD, https://game-news24.com/2022/11/06/we-study-the-structure-of-the-gpu-amd-navi-31-for-radeon-rx-7900-xt-xtx-video-cards
        memory_rate=960e9 * _REACHED,  # LACT, as above
    ),
    "navi21": Gpu(
        name="RX 6800",
        compute_units=60,  # AMD, https://hardforum.com/threads/amds-rx-6000-gpus-to-boost-perf-with-ryzen-5000-cpus-via-smart-memory-access.2002911/
        clock=2.105e9,  # AMD's boost clock, the same
        registers=1024,  # 128 KB, as above
        granule=16,  # as above
        l2_bytes=4 << 20,  # two thirds of the XTX's, videocardz as above
        l2_rate=16 * 128,  # assumed: a line of each of the 16 slices of 256 KiB
        cache_bytes=128 << 20,  # AMD, as above
        cache_rate=2e12,  # assumed: 1,024 bytes a cycle of 1.94 GHz
        memory_rate=512e9 * _REACHED,  # 256 bits of 16 Gbit/s
    ),
}

# Cycles of a SIMD for 32 lanes of an instruction, by kind: Mesa,
# src/amd/compiler/aco_statistics.cpp.
_VECTOR = {"multiply_add": 1, "vector": 1, "transcendental": 1, "quarter": 4, "double": 16}
_TRANSCENDENTAL = 4
# Of a product of matrices, whatever the wave's size: the same file; AMD has it as 512 operations of
# a compute unit a cycle.
_MATRIX = 32
# Waves of a SIMD at most (https://hacktech.pro/amds-rdna-2-shooting-for-the-top-by-rbanffy/), and
# bytes of shared memory of a compute unit (the ISA guides).
_WAVES = 16
_SHARED = 64 << 10


@dataclass(frozen=True)
class Launch:
    """A line of the file of counts: launches of the same kernel and size. Counts are of all of
    them.
    """

    code: int
    launches: int
    workgroups: int
    waves: int
    wave: int
    """Lanes of a wave."""
    both_units: bool
    """Whether a workgroup may use both compute units of a pair."""
    vector_registers: int
    shared_memory: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Prediction:
    """What a launch would take."""

    code: int
    launches: int
    workgroups: int
    """Of one launch."""
    waves: int
    """Of a SIMD at a time, at most."""
    bounds: dict[str, float]
    """Microseconds of one launch, by what takes them."""

    @property
    def microseconds(self) -> float:
        """The time of one launch."""
        return max(self.bounds.values(), default=0.0)

    @property
    def bound(self) -> str:
        """What takes longest."""
        return max(self.bounds, key=self.bounds.__getitem__, default="")

    def as_json(self) -> dict[str, Any]:
        """For people's programs."""
        return {
            "launches": self.launches,
            "workgroups": self.workgroups,
            "waves": self.waves,
            "microseconds": self.microseconds,
            "bound": self.bound,
            "bounds": self.bounds,
        }


# What the model needs of a line.
_COUNTED = (
    *_VECTOR,
    "matrix",
    "scalar",
    "scalar_memory",
    "branch",
    "shared_cycles",
    "requests",
    "blocks_of_workgroups_read",
    "blocks_of_workgroups_written",
    "cycles_of_workgroups",
    "blocks_read",
    "blocks_written",
)


def read(file: Path) -> list[Launch]:
    """Read the lines of a file of counts.

    Raises `RuntimeError` if the file cannot be read or a line is not such a kernel's.
    """
    found = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"{file}: {error}") from error
    for number, text in enumerate(lines, 1):
        try:
            line: dict[str, Any] = json.loads(text)
            whole = ("code", "launches", "workgroups", "waves", "wave", "vector_registers", "shared_memory")
            found.append(
                Launch(
                    both_units=bool(line["both_units"]),
                    counts={name: int(line[name]) for name in _COUNTED},
                    **{name: int(line[name]) for name in whole},
                )
            )
        except (ValueError, TypeError, KeyError) as error:
            raise RuntimeError(f"{file}, line {number}: not a line of RADEON_PLAYER_COUNTS") from error
    return found


def predict(launch: Launch, gpu: Gpu) -> Prediction:
    """Predict the time of a launch on a GPU."""
    units = 2 if launch.both_units else 1
    simds = 2 * units
    places = gpu.compute_units // units
    workgroups = launch.workgroups // launch.launches
    waves_of_workgroup = max(1, launch.waves // launch.workgroups)
    # The place with the most workgroups ends last.
    here = ceil(workgroups / places)
    on_simd = ceil(here * waves_of_workgroup / simds)
    slots = _slots(launch, gpu)
    resident = _resident(launch, slots * simds, waves_of_workgroup, units)
    count = launch.counts
    passes = launch.wave // 32

    def of_wave(cycles: float) -> float:
        return cycles / launch.waves

    def of_workgroup(cycles: float) -> float:
        return cycles / launch.workgroups

    def of_launch(blocks: float) -> float:
        return blocks * _BLOCK / launch.launches

    arithmetic = sum(count[kind] * cycles * passes for kind, cycles in _VECTOR.items())
    matrix = count["matrix"] * _MATRIX
    # One unit does both.
    name = "matrix" if matrix > arithmetic else "vector"
    # Memory that is used again and again lies in the smallest that holds it.
    moved = of_launch(count["blocks_read"] + count["blocks_written"])
    cycles = {
        name: on_simd * of_wave(arithmetic + matrix),
        "special": on_simd * of_wave(count["transcendental"] * _TRANSCENDENTAL * passes),
        "scalar": on_simd * of_wave(count["scalar"] + count["scalar_memory"] + 3 * count["branch"]),
        "shared": here * of_workgroup(count["shared_cycles"]) / units,
        "L0": here * of_workgroup(count["requests"]) / units,
        "L2": of_launch(count["blocks_of_workgroups_read"] + count["blocks_of_workgroups_written"]) / gpu.l2_rate,
        "cache": moved / gpu.cache_rate * gpu.clock if gpu.l2_bytes < moved <= gpu.cache_bytes else 0,
        "memory": moved / gpu.memory_rate * gpu.clock if moved > gpu.cache_bytes else 0,
        "latency": ceil(here / resident) * of_workgroup(count["cycles_of_workgroups"]),
    }
    bounds = {name: 1e6 * number / gpu.clock for name, number in cycles.items() if number}
    waves = min(slots, ceil(min(resident, here) * waves_of_workgroup / simds))
    return Prediction(launch.code, launch.launches, workgroups, waves, bounds)


def _slots(launch: Launch, gpu: Gpu) -> int:
    """How many waves a SIMD has registers for."""
    of_32 = launch.vector_registers * launch.wave // 32
    given = ceil(max(1, of_32) / gpu.granule) * gpu.granule
    return max(1, min(_WAVES, gpu.registers // given))


def _resident(launch: Launch, slots: int, waves: int, units: int) -> int:
    """How many workgroups are at a place at a time."""
    by_memory = units * _SHARED // launch.shared_memory if launch.shared_memory else slots
    return max(1, min(slots // waves, by_memory))


# Columns of the table, and the bounds that each has the longest of.
_COLUMNS = {
    "arithmetic": ("vector", "matrix", "special", "scalar"),
    "shared": ("shared",),
    "caches": ("L0", "L2", "cache"),
    "memory": ("memory",),
    "latency": ("latency",),
}


def table(predictions: list[Prediction], names: dict[int | None, str], gpu: Gpu, rows: int) -> Table:
    """The predictions that take longest, with all launches."""
    title = f"Predicted for an {gpu.name}, microseconds of a launch"
    made = Table(title=title, title_justify="left")
    made.add_column("kernel", overflow="fold")
    for name in ("launches", "workgroups", "waves", "time"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("bound by", no_wrap=True)
    for name in _COLUMNS:
        made.add_column(name, justify="right", no_wrap=True)
    longest = sorted(predictions, key=lambda it: it.launches * it.microseconds, reverse=True)
    for it in longest[:rows]:
        parts = [max((it.bounds.get(bound, 0.0) for bound in bounds), default=0.0) for bounds in _COLUMNS.values()]
        whole = (it.launches, it.workgroups, it.waves)
        made.add_row(
            names.get(it.code, f"{it.code:08x}"),
            *(f"{number:,}" for number in whole),
            f"{it.microseconds:,.1f}",
            it.bound,
            *(f"{part:,.1f}" if part else "" for part in parts),
        )
    return made
