"""PEP 517 backend: builds the engine and the plugins, then calls setuptools.

One wheel serves every CPython (`py3-none-<platform>`): the libraries use no libpython.
$TORCH_DML_TORCH chooses the torch versions to build for; if it is unset, it is the torch of the
Python that runs pip.
"""

from __future__ import annotations

import io
import os
import platform as running
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import torch_headers
import version
from setuptools import build_meta

ROOT = version.ROOT
LIB = ROOT / "python" / "torch_dml" / "lib"

# Contents of a source distribution: every file under these, except build products.
SOURCES = (
    *("Cargo.toml", "Cargo.lock", "pyproject.toml", "Makefile", "README.md"),
    *("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"),
    *("rustfmt.toml", "clippy.toml", "rust-toolchain.toml", "mkdocs.yml"),
    *(".cargo", ".ci", "crates", "plugin", "xtask", "python", "examples", "tests", "benches", "docs", "scripts"),
)
BUILT_SUFFIXES = {".so", ".dll", ".pyc", ".pyd"}
BUILT_FOLDERS = {"__pycache__", "target", "build", "dist", "torch_dml.egg-info"}

_Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Return setuptools' requirements, and torch if this Python has none."""
    wants = build_meta.get_requires_for_build_wheel(config_settings)
    return wants if torch_headers.find() else [*wants, version.TORCH]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: _Settings = None) -> list[str]:
    """Return nothing: an archive of the sources needs no torch."""
    return []


prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def build_wheel(wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None) -> str:
    """Build the libraries, then a wheel that contains them.

    `pip wheel --config-settings platform=manylinux_2_28_x86_64` builds for older systems than this
    machine, and `..._aarch64` for another processor; `make release` does.
    """
    settings = dict(config_settings or {})
    platform = settings.pop("platform", None)
    build_libraries(platform)
    # setuptools does not remove files from here that are no longer in the sources.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    settings["--build-option"] = ["--plat-name", platform or platform_tag()]
    return build_meta.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the libraries into the source tree and link to it."""
    build_libraries()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Pack every source file: Rust, C++, Python, tests and documents."""
    base = f"torch_dml-{version.VERSION}"
    target = Path(sdist_directory) / f"{base}.tar.gz"
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(target, "w:gz") as archive:
        info = build_meta.prepare_metadata_for_build_wheel(temporary)
        metadata = (Path(temporary) / info / "METADATA").read_bytes()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(metadata)
        archive.addfile(entry, io.BytesIO(metadata))
        for name in SOURCES:
            if (ROOT / name).exists():
                archive.add(ROOT / name, f"{base}/{name}", filter=_keep)
    return target.name


def _keep(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    path = Path(entry.name)
    if path.suffix in BUILT_SUFFIXES or BUILT_FOLDERS.intersection(path.parts[1:]):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def build_libraries(platform: str | None = None) -> None:
    """Run `cargo xtask build` for the torch versions found, and remove plugins for other versions
    from the package.

    `platform` is the wheel's platform; None is this machine.
    """
    torches = torch_headers.find()
    if not torches:
        raise RuntimeError(
            f"no torch with headers found: install {version.TORCH} in this Python, or set {torch_headers.VARIABLE} "
            f"to a site-packages/torch folder (several: separated by {os.pathsep!r})"
        )
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    if not Path(cargo).exists():
        raise RuntimeError("cargo not found: torch-dml's engine is Rust; install it from https://rustup.rs")
    command = [cargo, "run", "--quiet", "--package", "xtask", "--", "build", "--out", str(LIB)]
    if platform:
        command += ["--platform", platform]
    for torch in torches:
        command += ["--torch", str(torch.resolve())]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the native libraries did not build (exit status {done.returncode}); the errors are above")
    built = {Path(line).name for line in done.stdout.splitlines()}
    for file in LIB.iterdir():
        if file.suffix in {".so", ".dll"} and file.name not in built:
            file.unlink()


def platform_tag() -> str:
    """Return the wheel's platform. On Linux the glibc of this machine is the oldest that the wheel
    supports.
    """
    name, libc = running.libc_ver()
    if sys.platform == "linux" and name == "glibc":
        major, minor = libc.split(".")[:2]
        return f"manylinux_{major}_{minor}_{running.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
