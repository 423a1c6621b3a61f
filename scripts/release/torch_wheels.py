"""Extracts from PyTorch's wheels the headers and libraries with which a plugin is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Only these parts are extracted, since a wheel is large.
_FOLDER = "torch/include/"
_FILES = {
    "torch/version.py",
    *("torch/lib/libc10.so", "torch/lib/libtorch_cpu.so"),
    *("torch/lib/c10.lib", "torch/lib/torch_cpu.lib"),
}
# The variable that passes the folders to the build backend.
VARIABLE = "TORCH_DML_TORCH"


def fetch(version: str, platform: str, folder: Path) -> Path:
    """Return the folder `torch` of a version and a wheel's platform, somewhere under `folder`;
    downloads it once.
    """
    target = folder / platform / version
    torch = target / "torch"
    if torch.is_dir():
        return torch
    print(f"Downloading torch {version} for {platform}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        # The headers are the same for every Python version.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--platform", platform, "--python-version", "3.12"]
        subprocess.run([*command, "--dest", temporary, f"torch=={version}"], check=True)
        (wheel,) = Path(temporary).glob("torch-*.whl")
        unpacked = Path(temporary) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name in _FILES or (name.startswith(_FOLDER) and not name.endswith("/")):
                    archive.extract(name, unpacked)
        # The folder is moved in one step: an interrupted download leaves no folder that looks
        # complete.
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        unpacked.rename(target)
    return torch
