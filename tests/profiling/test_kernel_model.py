"""The times that `kernels --model` predicts, from counts whose times are known and from counts of
kernels that tools/radeon-player executed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch_dml.cli import kernel_model
from torch_dml.cli.kernel_model import GPUS, Launch

from tests.support.processes import run_python

XTX = GPUS["navi31"]
COUNTS = Path(__file__).parent / "navi31.counts.jsonl"

# Of a product of f32 of 2048 x 2048 the launch with 3 quarters of the tiles, the two launches of a
# product of f16, attention of 8 heads, 2048 x 2048 with 64 columns, softmax of 8192 rows of 4096,
# and a sum: what is predicted of each.
RECORDED = {
    "gemm": ("96", "4", "438.6", "latency"),
    "matrix_gemm": ("192", "2", "161.6", "latency"),
    "small_gemm": ("256", "4", "92.2", "shared"),
    "attention": ("128", "2", "257.9", "latency"),
    "softmax": ("8,192", "16", "300.7", "memory"),
    "add": ("32,768", "16", "300.7", "memory"),
}
CODES = {
    "gemm": 2004598841,
    "matrix_gemm": 659923111,
    "small_gemm": 1368852716,
    "attention": 3501151255,
    "softmax": 1511869600,
    "add": 138797356,
}


def launch(**counts: int) -> Launch:
    """960 workgroups of 4 waves of 64, ten for each compute unit of an RX 7900 XTX."""
    return Launch(
        code=1,
        launches=1,
        workgroups=960,
        waves=3840,
        wave=64,
        both_units=False,
        vector_registers=96,
        shared_memory=0,
        counts={**dict.fromkeys(kernel_model._COUNTED, 0), **counts},
    )


def cycles(it: Launch) -> tuple[str, float]:
    made = kernel_model.predict(it, XTX)
    return made.bound, made.microseconds * XTX.clock / 1e6


@pytest.mark.parametrize(
    ("counts", "bound", "expected"),
    [
        # 20 waves on each SIMD of a thousand instructions each, of two passes of 32 lanes.
        ({"multiply_add": 3_840_000}, "vector", 40_000),
        ({"vector": 1_920_000, "quarter": 1_920_000}, "vector", 100_000),
        ({"double": 3_840_000}, "vector", 640_000),
        # They issue in a pass each, and their own unit takes four.
        ({"transcendental": 3_840_000}, "special", 160_000),
        ({"matrix": 3_840_000, "vector": 3_840_000}, "matrix", 680_000),
        ({"scalar": 3_840_000, "branch": 384_000}, "scalar", 26_000),
        # Ten workgroups of a compute unit after each other.
        ({"shared_cycles": 9_600_000}, "shared", 100_000),
        ({"requests": 9_600_000}, "L0", 100_000),
        # All of the GPU: 3,072 bytes a cycle.
        ({"blocks_of_workgroups_read": 4_800, "blocks_of_workgroups_written": 4_800}, "L2", 200),
        # Of 16 slots of the registers 8 are there: four workgroups at a time, three times.
        ({"cycles_of_workgroups": 9_600_000}, "latency", 30_000),
    ],
)
def test_the_unit_that_takes_longest(counts: dict[str, int], bound: str, expected: float) -> None:
    found, took = cycles(launch(**counts))
    assert found == bound and took == pytest.approx(expected)


def test_waves_of_32_take_one_pass() -> None:
    bound, took = cycles(replace(launch(vector=3_840_000), wave=32))
    assert bound == "vector" and took == pytest.approx(20_000)


@pytest.mark.parametrize(
    ("blocks", "bound", "rate"),
    [(1 << 16, "L2", 3072 * 2.5e9), (1 << 20, "cache", 3.5e12), (1 << 24, "memory", 960e9 * 0.93)],
)
def test_memory_lies_where_it_fits(blocks: int, bound: str, rate: float) -> None:
    made = kernel_model.predict(launch(blocks_read=blocks, blocks_of_workgroups_read=blocks), XTX)
    assert made.bound == bound and made.microseconds == pytest.approx(blocks * 64 / rate * 1e6)


@pytest.mark.parametrize(
    ("changes", "rounds", "waves"),
    [
        ({}, 3, 8),
        # One workgroup has room: each waits for the one before.
        ({"shared_memory": 40_000}, 10, 2),
        ({"shared_memory": 32_768}, 5, 4),
        ({"vector_registers": 252}, 10, 2),
        ({"vector_registers": 12}, 2, 16),
        # Two compute units with the shared memory of both.
        ({"shared_memory": 40_000, "both_units": True}, 7, 3),
    ],
)
def test_what_fits_at_a_time(changes: dict[str, Any], rounds: int, waves: int) -> None:
    made = kernel_model.predict(replace(launch(cycles_of_workgroups=960_000), **changes), XTX)
    assert made.microseconds * 2500 == pytest.approx(rounds * 1000) and made.waves == waves


def test_launches_are_told_apart() -> None:
    # Twice the same launch takes as long as it does once.
    once = launch(vector=3_840_000, blocks_read=1 << 20)
    counts = {name: 2 * count for name, count in once.counts.items()}
    twice = replace(once, launches=2, workgroups=1920, waves=7680, counts=counts)
    assert kernel_model.predict(twice, XTX).bounds == pytest.approx(kernel_model.predict(once, XTX).bounds)


def test_recorded_counts_give_the_recorded_table(tmp_path: Path) -> None:
    line = {"adapter": "a GPU", "driver": "RADV", "specialisation": "", "workgroup": [256, 1, 1], "milliseconds": 1.0}
    statistics = tmp_path / "statistics.jsonl"
    statistics.write_text(
        "".join(
            json.dumps(
                {
                    **line,
                    "kernel": name,
                    "id": name,
                    "executables": [{"subgroup_size": 64, "statistics": {"Hash": code}}],
                }
            )
            + "\n"
            for name, code in CODES.items()
        )
    )
    given = ("-m", "torch_dml", "kernels", "--counts", str(COUNTS), "--model", "navi31")
    done = run_python(*given, str(statistics))
    assert done.returncode == 0, done.stderr
    _, _, text = done.stdout.partition("Predicted for an RX 7900 XTX")
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in text.splitlines() if row.startswith("│")]
    assert {row[0]: (row[2], row[3], row[4], row[5]) for row in rows} == RECORDED
    programs = json.loads(run_python(*given, "--json", str(statistics)).stdout)
    (predicted,) = next(program for program in programs if program["kernel"] == "gemm")["predicted"]
    assert predicted["bound"] == "latency" and round(predicted["microseconds"], 1) == 438.6


def test_a_model_needs_counts(tmp_path: Path) -> None:
    file = tmp_path / "statistics.jsonl"
    file.write_text("")
    done = run_python("-m", "torch_dml", "kernels", "--model", "navi31", str(file))
    assert done.returncode == 1 and done.stderr.strip() == "error: --model needs --counts"
    counts = tmp_path / "counts.jsonl"
    counts.write_text('{"code": 1}\n')
    for given in (counts, tmp_path / "nowhere"):
        with pytest.raises(RuntimeError, match=given.name):
            kernel_model.read(given)
