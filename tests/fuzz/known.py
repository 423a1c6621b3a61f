"""The known differences, and their reasons: a file of tests/fuzz/known for each topic.

`operators` are regular expressions for whole names, `kinds` are kinds of difference; `dtypes`
(default: all) and `message`, a regular expression that occurs in the difference's message, restrict
it. A case is explained if each of its differences is.
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
    """Differences of these kinds, in operators whose name matches a pattern, in these dtypes, and
    the reason.
    """

    why: str
    operators: str
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...] = ()  # empty: all
    message: str = ""

    def is_about(self, finding: Finding) -> bool:
        """Whether this applies to the case's operator and dtype."""
        named = re.fullmatch(self.operators, finding.operator) is not None
        return named and (not self.dtypes or finding.dtype in self.dtypes)

    def explains(self, difference: Difference) -> bool:
        """Whether this explains a difference of a case to which it applies."""
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
    """The findings with differences that nothing explains."""
    return [finding for finding in findings if finding.differs and not explained(finding, known)]


def explained(finding: Finding, known: list[Known]) -> bool:
    """Whether all differences of a case are known."""
    about = [one for one in known if one.is_about(finding)]
    return all(any(one.explains(difference) for one in about) for difference in finding.differences)
