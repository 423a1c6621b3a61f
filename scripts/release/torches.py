"""The versions of torch for which wheels have plugins: one of each minor version in the range that
pyproject.toml states.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "build_backend"))
import version


def of(requirement: str) -> tuple[str, ...]:
    """Return one version of each minor in a range: ("2.11.0", "2.12.0") for torch>=2.11,<2.13."""
    minors = re.fullmatch(r"torch>=2\.(\d+),<2\.(\d+)", requirement)
    if minors is None:
        raise RuntimeError(f"not a range of torch's minors: {requirement!r}")
    return tuple(f"2.{minor}.0" for minor in range(int(minors[1]), int(minors[2])))


TORCHES = of(version.TORCH)
