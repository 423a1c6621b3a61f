"""`tests/gpus`: calls that are recorded and made again, and which spills are explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch_dml.cli.kernels import Program

from tests.gpus import known, page
from tests.gpus.calls import described, repeat
from tests.gpus.compiling import Compiled
from tests.gpus.families import FAMILIES, family
from tests.gpus.known import Known
from tests.support.processes import run_python


def program(kernel: str = "gemm", **figures: object) -> Program:
    values = {
        "adapter": "a GPU",
        "driver": "a driver",
        "kernel": kernel,
        "source": "",
        "specialisation": "",
        "id": kernel,
    }
    return Program(**{**values, "workgroup": (64, 1, 1), "milliseconds": 1.0, **figures})  # type: ignore[arg-type]


def test_a_call_is_described_and_made_again(device: torch.device) -> None:
    x = torch.zeros(6, 8, device=device)[1::2, ::2]
    line = described(torch.ops.aten.sum.dim_IntList, (x, [1], True), {"dtype": torch.float32})
    assert line is not None
    name, args, kwargs = json.loads(line)
    assert name == "aten.sum.dim_IntList" and kwargs == {"dtype": {"torch": "float32"}}
    assert args == [{"t": ["dml", "float32", [3, 4], [16, 2], 8]}, [1], True]
    before = torch.dml.memory_stats(device)["num_alloc_retries"]
    repeat(line)
    assert torch.dml.memory_stats(device)["num_alloc_retries"] == before


@pytest.mark.parametrize("number", [2.5, float("inf"), float("-inf"), 1 + 2j, True, 3])
def test_numbers_survive(device: torch.device, number: complex) -> None:
    x = torch.zeros(3, device=device, dtype=torch.complex64)
    line = described(torch.ops.aten.mul.Scalar, (x, number), {})
    assert line is not None and "NaN" not in line and "Infinity" not in line
    repeat(line)


def test_calls_without_the_device_are_left_out() -> None:
    assert described(torch.ops.aten.neg.default, (torch.zeros(3),), {}) is None
    assert described(torch.ops.aten.empty.memory_format, ([3],), {"device": torch.device("cpu")}) is None


def test_a_wrong_call_raises_what_the_operator_raises(device: torch.device) -> None:
    line = described(
        torch.ops.aten.mm.default, (torch.zeros(3, 4, device=device), torch.zeros(3, 4, device=device)), {}
    )
    assert line is not None
    with pytest.raises(RuntimeError):
        repeat(line)


def test_calls_of_a_file_are_made_and_errors_counted(device: torch.device, tmp_path: Path) -> None:
    x = torch.zeros(3, 4, device=device)
    lines = [described(torch.ops.aten.neg.default, (x,), {}), described(torch.ops.aten.mm.default, (x, x), {})]
    file = tmp_path / "calls.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    done = run_python("-m", "tests.gpus.replay", str(file))
    assert done.returncode == 0, done.stderr
    *numbers, last = done.stdout.splitlines()
    assert numbers == ["1", "2"]
    (error,) = json.loads(last)["errors"]
    assert error.startswith("aten.mm.default: ")


def test_spills_without_a_reason_are_found() -> None:
    entry = Known(re.compile("attention "), re.compile("skl|bmg"), 20, "a reason")
    explained, many = program("attention Key", spills=20), program("attention Key", spills=21)
    refused, fine = program("attention Key", error="ErrorUnknown"), program("sum", spills=0)
    programs = [explained, many, refused, fine]
    assert known.unexplained("bmg", programs, [entry]) == [many, refused]
    assert known.unexplained("bmg2", [explained], [entry]) == [explained]


def test_a_reason_may_be_of_one_dtype() -> None:
    entry = Known(re.compile("softmax"), re.compile("skl"), 20, "a reason", re.compile("F64"))
    wide, narrow = (
        program("softmax", spills=9, specialisation=f"Spec {{ input: {dtype} }}") for dtype in ("F64", "F32")
    )
    assert known.unexplained("skl", [wide, narrow], [entry]) == [narrow]


def test_the_file_of_known_spills_can_be_read() -> None:
    entries = known.read()
    assert entries and all(entry.reason and entry.spills > 0 for entry in entries)


def test_kernels_belong_to_families() -> None:
    expected = {
        ("dml_compute::matmul::gemm::Spec", "a: Access { dtype: BF16, rounds_to"): "products bf16",
        ("dml_compute::matmul::gemm::Spec", "a: Access { dtype: F32, rounds_to"): "products f32",
        ("dml_compute::attention::spec::Spec", ""): "attention",
        ("dml_compute::sorting::row_sort::Spec", ""): "sort",
        ("dml_engine::transfer::polled::PolledWords", ""): "the rest",
    }
    for (source, specialisation), name in expected.items():
        assert family(program(source=source, specialisation=specialisation)) == name
        assert name in FAMILIES


def test_the_page_counts_kernels_and_spills() -> None:
    programs = [program("gemm", spills=3, waves=4), program("sum", spills=0, waves=8)]
    text = page.text([Compiled("navi31", "a Radeon", programs)], [])
    (row,) = (line for line in text.splitlines() if line.startswith("| navi31: a Radeon | 2 / 1 (3)"))
    assert row.count("|") == len(FAMILIES) + 3
    assert "| navi31: a Radeon | 4 / 4 |" in text and "Drivers: a driver." in text


def test_the_command_refuses_gpus_that_it_does_not_know() -> None:
    done = run_python("-m", "tests.gpus", "voodoo")
    assert done.returncode == 2 and "no such GPU: voodoo" in done.stderr
    assert "--tests" in run_python("-m", "tests.gpus", "--help").stdout
