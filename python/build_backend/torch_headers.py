"""Finds the torch whose headers the plugin is compiled with, without importing it."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "TORCH_DML_TORCH"


def chosen() -> list[Path]:
    """Return the folders named by $TORCH_DML_TORCH: torch itself, site-packages or virtual
    environments.
    """
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    folders = [Path(name).expanduser() for name in named if name.strip()]
    for folder in folders:
        if not folder.is_dir():
            raise RuntimeError(f"{VARIABLE} names {folder}, which is not a folder")
    return folders


def installed() -> Path | None:
    """Return the torch folder of the Python that runs this.

    An isolated build removes site-packages from sys.path, but the folder is on the disk.
    """
    for folder in _site_folders():
        torch = folder / "torch"
        if (torch / "version.py").is_file() and (torch / "include").is_dir():
            return torch
    return None


def find() -> list[Path]:
    """Return the torch folders to build for; empty if there is none."""
    folders = chosen()
    if folders:
        return folders
    torch = installed()
    return [torch] if torch else []


def _site_folders() -> Iterator[Path]:
    roots = [sysconfig.get_paths()["platlib"], sysconfig.get_paths()["purelib"], *sys.path]
    # A virtual environment inherits these only if it was made with --system-site-packages.
    if sys.prefix == sys.base_prefix or _inherits_system():
        roots += [*site.getsitepackages([sys.base_prefix]), site.getusersitepackages()]
        roots += [sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_prefix})["platlib"]]
    for root in dict.fromkeys(roots):
        folder = Path(root)
        if folder.is_dir():
            yield folder
            yield from _linked(folder)


def _linked(folder: Path) -> Iterator[Path]:
    """The folders that .pth files in `folder` add to the path."""
    for file in sorted(folder.glob("*.pth")):
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            text = line.strip()
            if text and not text.startswith(("#", "import ", "import\t")):
                target = folder / text
                if target.is_dir():
                    yield target


def _inherits_system() -> bool:
    try:
        text = (Path(sys.prefix) / "pyvenv.cfg").read_text(encoding="utf-8").lower()
    except OSError:
        return False
    return "include-system-site-packages = true" in text
