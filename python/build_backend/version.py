"""The version of the package: `workspace.package.version` of Cargo.toml, which is its only home."""

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


VERSION = read()
