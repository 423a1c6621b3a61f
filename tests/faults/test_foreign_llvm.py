"""A process that shows another LLVM's symbols to all libraries, as TensorFlow 2.21's do: Mesa's
drivers use their own all the same. The other LLVM is a library whose functions end the process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import run_python

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#define FOREIGN(name) void name(void) { fputs("the foreign " #name " was called\\n", stderr); _Exit(77); }
FOREIGN(LLVMContextCreate)
FOREIGN(LLVMModuleCreateWithNameInContext)
FOREIGN(LLVMCreateBuilderInContext)
FOREIGN(_ZN4llvm11LLVMContextC1Ev)
"""

PROGRAM = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import torch
x = torch.arange(6.0, device="dml").reshape(2, 3)
print((x @ x.T + 1).tolist())
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "foreign.c", tmp_path / "libforeign.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.skipif(sys.platform != "linux", reason="libraries share their symbols on Linux only")
def test_drivers_use_their_own_llvm(foreign: Path) -> None:
    done = run_python("-c", PROGRAM, str(foreign), timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.strip() == "[[6.0, 15.0], [15.0, 51.0]]"
