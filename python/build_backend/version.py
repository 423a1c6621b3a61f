"""The version of the package, and the versions of torch that it supports. Each is defined in one
place:

`workspace.package.version` of Cargo.toml, and `dependencies` of pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read(root: Path = ROOT) -> str:
    """Return the version in `root`/Cargo.toml."""
    text = (root / "Cargo.toml").read_text(encoding="utf-8")
    section = re.search(r"^\[workspace\.package\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
    version = section and re.search(r'^version\s*=\s*"([^"]+)"', section[1], re.M)
    if not version:
        raise RuntimeError(f"no version under [workspace.package] in {root / 'Cargo.toml'}")
    return version[1]


def read_torch(root: Path = ROOT) -> str:
    """Return the requirement on torch in `root`/pyproject.toml: "torch>=2.11,<2.16"."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    requirement = re.search(r'^dependencies = \[[^]]*?"(torch[<>=][^"]+)"', text, re.M)
    if not requirement:
        raise RuntimeError(f"no torch among the dependencies of {root / 'pyproject.toml'}")
    return requirement[1]


VERSION = read()
TORCH = read_torch()
