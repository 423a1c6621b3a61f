"""`run`: runs a script that was written for CUDA, with the device in place of CUDA."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Sequence

from torch_dml_autoload import nvidia_gpus


def run(script: str, arguments: Sequence[str], *, module: bool, force: bool) -> int:
    """Run a script (or a module) as `python` would, replacing this process, and return its exit
    status if it returns.

    Raises RuntimeError if a CUDA device is usable, unless `force`.
    """
    if nvidia_gpus() > 0 and not force:
        raise RuntimeError(
            "a CUDA device is usable here, so the script can run on it without torch-dml; --force takes its place"
        )
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        raise RuntimeError("TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps PyTorch from loading torch-dml; unset it")
    if not importlib.metadata.entry_points(group="torch.backends", name="torch_dml"):
        raise RuntimeError("PyTorch does not find torch-dml: this copy of it is not installed (`pip install .`)")
    environment = {**os.environ, "TORCH_DML_AS_CUDA": "force" if force else "1"}
    # Pass the flags of this interpreter to the script's.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags, *(["-m"] if module else []), script, *arguments]
    if sys.platform == "win32":
        # On Windows, exec would return to the shell before the program has ended.
        return subprocess.run(command, env=environment).returncode
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)
