"""The differences that are known, with their reasons: tests/fuzz/known.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .trial import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path(__file__).with_name("known.toml")


@dataclass(frozen=True)
class Known:
    """Differences of these kinds, of operators whose name has a match of a pattern, in these dtypes, and why."""

    why: str
    operators: str
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...] = ()  # none: all
    message: str = ""

    def explains(self, finding: Finding) -> bool:
        """Whether this is why a case differs."""
        return (
            re.fullmatch(self.operators, finding.operator) is not None
            and {finding.kind, *finding.others} <= set(self.kinds)
            and (not self.dtypes or finding.dtype in self.dtypes)
            and re.search(self.message, finding.message) is not None
        )


def read(path: Path = PATH) -> list[Known]:
    """The differences of a TOML file."""
    return [
        Known(
            entry["why"],
            "|".join(entry["operators"]),
            tuple(entry["kinds"]),
            tuple(entry.get("dtypes", ())),
            entry.get("message", ""),
        )
        for entry in tomllib.loads(path.read_text())["known"]
    ]


def unexplained(findings: Iterable[Finding], known: list[Known]) -> list[Finding]:
    """The findings that differ and that nothing explains."""
    return [finding for finding in findings if finding.differs and not any(one.explains(finding) for one in known)]
