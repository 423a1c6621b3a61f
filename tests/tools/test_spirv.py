"""Kernels that programs emit are collected, and validated with `spirv-val`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.processes import run_python

ADD = "import torch, torch_dml; print((torch.ones(3, device='dml') + 1).tolist())"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python("scripts/check_spirv.py", str(folder))


@pytest.mark.smoke
def test_emitted_kernels_are_valid(tmp_path: Path):
    done = run_python("-c", ADD, TORCH_DML_SPIRV_DIR=str(tmp_path))
    assert done.stdout == "[2.0, 2.0, 2.0]\n", done.stderr
    count = len(list(tmp_path.glob("*.spv")))
    assert count > 0
    for unseen in (count, 0):
        done = check(tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{count} modules in {tmp_path}, {unseen} of them unseen, 0 invalid\n"


def test_an_invalid_kernel_is_named(tmp_path: Path):
    assert run_python("-c", ADD, TORCH_DML_SPIRV_DIR=str(tmp_path)).returncode == 0
    words = bytearray(next(tmp_path.glob("*.spv")).read_bytes())
    words[-8:-4] = b"\xfd\x00\x02\x00"  # OpReturn with one word too many, in place of the end.
    (tmp_path / "broken-0123.spv").write_bytes(words)
    done = check(tmp_path)
    assert done.returncode == 1
    assert "broken-0123.spv: " in done.stderr
    assert not (tmp_path / "broken-0123.spv").exists()
    assert check(tmp_path).returncode == 0  # It is no longer emitted.


def test_nothing_collected_is_an_error(tmp_path: Path):
    assert check(tmp_path).returncode == 1


def test_what_runs_in_place_of_the_emitters_modules_is_counted(tmp_path: Path):
    """Without Microsoft's compiler none run; results are correct nevertheless, and the reason is
    counted.
    """
    for reason in ("its HLSL is not compiled", "the compiler's SPIR-V is not understood"):
        done = run_python("-c", ADD, TORCH_DML_HLSL_DIR=str(tmp_path), TORCH_DML_CACHE_DIR=str(tmp_path))
        assert done.stdout == "[2.0, 2.0, 2.0]\n", done.stderr
        count = len(list(tmp_path.glob("*.origin")))
        report = run_python("scripts/check_hlsl.py", str(tmp_path), "--ran")
        assert report.returncode == 1
        assert report.stdout == (
            f"{count} kernels ran: 0 as the compiler's SPIR-V; {count} as the emitter's module: {reason}\n"
        )
        for kernel in tmp_path.glob("*.hlsl"):
            kernel.with_suffix(".spv").write_bytes(b"no module")
