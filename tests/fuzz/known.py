"""
The differences that are known, and why: a file of tests/fuzz/known for each topic.

`operators` are regular expressions of whole names, `kinds` are kinds of difference; `dtypes`
(default: all) and `message`, which has a match in the difference's message, narrow it down. A case
is explained if each difference is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .judging import Difference
from .trial import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).with_name("known")


@dataclass(frozen=True)
class Known:
    """Differences of these kinds, of operators whose name has a match of a pattern, in these
    dtypes, and why.
    """

    why: str
    operators: str
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...] = ()  # none: all
    message: str = ""

    def is_about(self, finding: Finding) -> bool:
        """Whether this is of the case's operator and dtype."""
        named = re.fullmatch(self.operators, finding.operator) is not None
        return named and (not self.dtypes or finding.dtype in self.dtypes)

    def explains(self, difference: Difference) -> bool:
        """Whether this is why a case that it is about differs so."""
        return difference.kind in self.kinds and re.search(self.message, difference.message) is not None


def read(folder: Path = FOLDER) -> list[Known]:
    """The differences of the TOML files of a folder."""
    return [
        Known(
            entry["why"],
            "|".join(entry["operators"]),
            tuple(entry["kinds"]),
            tuple(entry.get("dtypes", ())),
            entry.get("message", ""),
        )
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["known"]
    ]


def unexplained(findings: Iterable[Finding], known: list[Known]) -> list[Finding]:
    """The findings that differ and that nothing explains."""
    return [finding for finding in findings if finding.differs and not explained(finding, known)]


def explained(finding: Finding, known: list[Known]) -> bool:
    """Whether all that differs in a case is known."""
    about = [one for one in known if one.is_about(finding)]
    return all(any(one.explains(difference) for one in about) for difference in finding.differences)
