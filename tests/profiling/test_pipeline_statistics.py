"""TORCH_DML_PIPELINE_STATISTICS, and the command that reads its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch_dml.cli import kernels
from torch_dml.cli.kernels import Program

from tests.support.processes import run_python

PROGRAM = """
import torch
x = torch.ones(33, 5, device="dml")
(x @ x.t()).softmax(1).sum().item()
"""

# What drivers report of a kernel: Mesa 26.1's for AMD, Intel and Qualcomm, NVK, NVIDIA's 580.159.
REPORTS = {
    "radv": (
        {"VGPRs": 252, "SGPRs": 108, "Spilled VGPRs": 0, "LDS size": 17408, "Subgroups per SIMD": 6, "Latency": 40706},
        Program("", "", "", "", "", "", (), 0.0, registers=252, spills=0, shared=17408, waves=6, cycles=40706),
    ),
    "anv": (
        {"GRF registers": 0, "Max live registers": 303, "Spills": 33, "Fills": 142, "Instructions": 8090},
        Program("", "", "", "", "", "", (), 0.0, registers=303, spills=33, fills=142, instructions=8090),
    ),
    "turnip": (
        {"Registers used": 48, "Max Waves Per Core": 2, "STP Count": 0, "LDP Count": 0, "Instruction Count": 8668},
        Program("", "", "", "", "", "", (), 0.0, registers=48, waves=2, spills=0, fills=0, instructions=8668),
    ),
    # "Local Memory Size" is the same constant for each kernel.
    "nvidia": (
        {"Register Count": 73, "Local Memory Size": 68719476736, "Shared Memory Size": 12288, "Stack Size": 0},
        Program("", "", "", "", "", "", (), 0.0, registers=73, scratch=0, shared=12288),
    ),
    "nvk": (
        {"Number of GPRs": 128, "Spills to memory": 2, "Fills from memory": 2, "SLM size": 8, "Max warps/SM": 16},
        Program("", "", "", "", "", "", (), 0.0, registers=128, spills=2, fills=2, scratch=8, waves=16),
    ),
}


def line(name: str = "gemm", **entries: Any) -> dict[str, Any]:
    kernel = {"adapter": "a GPU", "driver": "a driver", "kernel": name, "id": f"{name} id", "specialisation": "Gemm"}
    return {**kernel, "workgroup": [64, 1, 1], "milliseconds": 1.5, **entries}


def executable(**statistics: float) -> dict[str, Any]:
    return {"name": "compute", "subgroup_size": 32, "statistics": statistics}


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    file = folder / "statistics.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    return file


@pytest.mark.smoke
def test_every_compiled_kernel_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "statistics.jsonl"
    done = run_python("-c", PROGRAM, TORCH_DML_PIPELINE_STATISTICS=str(file))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    names = {entry["kernel"].split()[0] for entry in lines}
    assert {"gemm", "softmax"} <= names, names
    assert len({entry["id"] for entry in lines}) == len(lines)
    for entry in lines:
        assert entry["specialisation"] and entry["adapter"] and entry["driver"] and entry["milliseconds"] >= 0
        assert len(entry["workgroup"]) == 3 and isinstance(entry["executables"], list)
    programs = kernels.read(file)
    assert {program.id for program in programs} == {entry["id"] for entry in lines}
    # A second process appends: its kernels are the same.
    assert run_python("-c", PROGRAM, TORCH_DML_PIPELINE_STATISTICS=str(file)).returncode == 0
    assert len(file.read_text().splitlines()) == 2 * len(lines) and len(kernels.read(file)) == len(programs)


def test_machine_code_is_written_where_the_driver_shows_it(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    done = run_python("-c", PROGRAM, TORCH_DML_PIPELINE_DISASSEMBLY=str(folder))
    assert done.returncode == 0, done.stderr
    for file in folder.glob("*.txt"):
        name, _, id_ = file.stem.rpartition("-")
        assert name and len(id_) == 32 and file.read_text("utf-8").startswith("program ")


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    done = run_python("-c", PROGRAM, TORCH_DML_PIPELINE_STATISTICS=str(tmp_path / "nowhere" / "file"))
    assert done.returncode == 0 and done.stderr.count("TORCH_DML_PIPELINE_STATISTICS=") == 1


@pytest.mark.parametrize("driver", REPORTS)
def test_figures_by_the_names_that_drivers_give_them(driver: str, tmp_path: Path) -> None:
    statistics, expected = REPORTS[driver]
    (found,) = kernels.read(write(tmp_path, line(executables=[executable(**statistics)])))
    assert (found.kernel, found.subgroup_size, found.workgroup) == ("gemm", 32, (64, 1, 1))
    for figure in ("registers", "spills", "fills", "scratch", "shared", "waves", "instructions", "cycles"):
        assert getattr(found, figure) == getattr(expected, figure), figure


def test_the_worst_kernels_come_first(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        line("short", executables=[executable(Spills=0, Instructions=10)]),
        line("long", executables=[executable(Spills=0, Instructions=1000)]),
        line("spilling", executables=[executable(Spills=3, Instructions=20), executable(Spills=0, Instructions=9)]),
        line("silent", executables=[]),
    )
    done = run_python("-m", "torch_dml", "kernels", str(file))
    assert done.returncode == 0, done.stderr
    order = [done.stdout.index(name) for name in ("spilling", "long", "short", "silent")]
    assert order == sorted(order)
    assert "a GPU: 4 kernels, 1 spill (worst: 3 in spilling), longest 1,000 instructions" in done.stdout
    rows = json.loads(run_python("-m", "torch_dml", "kernels", "--json", "--select", "l", str(file)).stdout)
    assert [row["kernel"] for row in rows] == ["spilling", "long", "spilling", "silent"]
    assert "4 more: --rows 5" in run_python("-m", "torch_dml", "kernels", "--rows", "1", str(file)).stdout


def test_a_refused_kernel_is_named_and_is_a_failure(tmp_path: Path) -> None:
    file = write(tmp_path, line(executables=[]), line("refused", error="ErrorUnknown"))
    done = run_python("-m", "torch_dml", "kernels", str(file))
    assert done.returncode == 1 and "refused (Gemm): ErrorUnknown" in done.stdout and "1 refused" in done.stdout


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"adapter": 1}', "\xff"])
def test_other_files_are_errors(text: str, tmp_path: Path) -> None:
    file = tmp_path / "statistics.jsonl"
    file.write_text(text, encoding="latin-1")
    for given in (file, tmp_path, tmp_path / "nowhere"):
        done = run_python("-m", "torch_dml", "kernels", str(given))
        assert done.returncode == 1 and done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1


def test_what_was_executed_stands_beside_it(tmp_path: Path) -> None:
    kinds = {name: 0 for name in kernels._KINDS}
    counted = {
        **kinds,
        **{name: 0 for name in kernels._COUNTS},
        "code": 7,
        "launches": 1,
        "instructions": 1000,
        "matrix": 300,
    }
    file = write(
        tmp_path, line("gemm", executables=[executable(Hash=7)]), line("idle", executables=[executable(Hash=8)])
    )
    counts = tmp_path / "counts.jsonl"
    # A kernel that two processes ran.
    counts.write_text(2 * (json.dumps(counted) + "\n"))
    done = run_python("-m", "torch_dml", "kernels", "--json", "--counts", str(counts), str(file))
    assert done.returncode == 0, done.stderr
    ran = {row["kernel"]: row["ran"] for row in json.loads(done.stdout)}
    assert (
        ran["idle"] is None and ran["gemm"]["instructions"] == 2000 and ran["gemm"]["kinds"] == {**kinds, "matrix": 600}
    )
    assert "2,000" in run_python("-m", "torch_dml", "kernels", "--counts", str(counts), str(file)).stdout
    counts.write_text("{}\n")
    done = run_python("-m", "torch_dml", "kernels", "--counts", str(counts), str(file))
    assert done.returncode == 1 and done.stderr.startswith("error: ")


def test_a_dry_run_computes_where_there_is_an_adapter_that_does() -> None:
    program = 'import torch; x = torch.ones(40, 40, device="dml").half(); print((x @ x).sum().item())'
    done = run_python("-c", program, TORCH_DML_DRY_RUN="1", TORCH_DML_MATRIX_UNITS="emulate")
    assert done.returncode == 0 and done.stdout == "64000.0\n", done.stderr
