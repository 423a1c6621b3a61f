"""Unusual contents at the path of the pipeline cache's file, when a program opens a device."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import ROOT
from tests.support.processes import run_python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs, and users' numbers")

# Another user: nobody. Imports come first, since that user may not be allowed to read their
# folders.
OTHER = 65534
PROGRAM = """
import os, sys
import torch, torch_dml
if len(sys.argv) > 1:
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
print((torch.arange(10, device="dml") + 1).sum().item())
"""
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becomes another user")


def said_by(folder: Path, *arguments: str) -> str:
    """The log messages about the cache of a program, whose results and running time are checked."""
    environment = {"TORCH_DML_CACHE_DIR": str(folder), "TORCH_DML_LOG": "dml_gpu=warn"}
    done = run_python("-c", PROGRAM, *arguments, timeout=100, **environment)
    assert (done.returncode, done.stdout) == (0, "55\n"), done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if "cache of pipelines" in line)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user may enter, and only this one may write to."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def cache_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    assert file.name.startswith("pipelines-") and file.suffix == ".bin"
    return file


def is_sound(file: Path) -> bool:
    status = file.lstat()
    return stat.S_ISREG(status.st_mode) and file.read_bytes().startswith(b"TDMLPC") and status.st_mode & 0o077 == 0


def test_a_fifo_in_its_place_delays_nothing(folder: Path) -> None:
    begin = time.monotonic()
    assert said_by(folder) == ""
    usual = time.monotonic() - begin
    file = cache_file(folder)
    assert is_sound(file)
    file.unlink()
    os.mkfifo(file)
    begin = time.monotonic()
    said = said_by(folder)
    assert time.monotonic() - begin < 3 * usual + 5
    assert f"{file}: it is not a regular file; it is not read" in said
    assert is_sound(cache_file(folder)), "a file is in its place again"
    assert said_by(folder) == ""


@needs_root
def test_a_folder_that_may_not_be_written_to(folder: Path) -> None:
    """Neither an empty folder nor one with a file of the user's own: nothing fails, and nothing is
    written.
    """
    assert "pipelines are not saved to it" in said_by(folder, str(OTHER))
    assert not list(folder.iterdir())
    said_by(folder)
    file = cache_file(folder)
    os.chown(file, OTHER, OTHER)
    before = file.read_bytes()
    said = said_by(folder, str(OTHER))
    assert "not read" not in said, "it is the user's own"
    assert file.read_bytes() == before and cache_file(folder) == file


@needs_root
def test_another_users_file_is_not_read(folder: Path) -> None:
    said_by(folder)
    file = cache_file(folder)
    file.chmod(0o644)
    assert said_by(folder) == "", "one's own is read, if others may read it too"
    os.chown(file, OTHER, OTHER)
    assert "it is another user's; it is not read" in said_by(folder)
    assert file.lstat().st_uid == os.geteuid(), "one's own has taken its place"
    # The reverse: the file is not root's, and the user is not root.
    file.chmod(0o644)
    assert "it is another user's; it is not read" in said_by(folder, str(OTHER))


def test_three_programs_at_once_leave_one_sound_file(folder: Path) -> None:
    """Each process compiles its own kernels and saves them repeatedly."""
    program = """
import sys, time
import torch, torch_dml
x = torch.rand(8, 8, device="dml")
ops = [[torch.sin, torch.cos, torch.tan], [torch.exp, torch.log, torch.erf], [torch.asin, torch.acos, torch.atan]]
for op in ops[int(sys.argv[1])]:
    assert torch.allclose(op(x).cpu(), op(x.cpu()), atol=1e-5)
    time.sleep(0.6)  # What is new is saved after 0.4 s.
"""
    environment = {**os.environ, "TORCH_DML_CACHE_DIR": str(folder), "TORCH_DML_LOG": "dml_gpu=warn"}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(index)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(3)
    ]
    for one in programs:
        _, err = one.communicate(timeout=200)
        assert one.returncode == 0 and "cache of pipelines" not in err, err
    assert is_sound(cache_file(folder)), "and no temporary file"
    assert said_by(folder) == ""
