"""The known failures, with their reasons: docs/data/tensorflow_tests.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .results import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Failure:
    """Tests that fail with such a message, and the reason."""

    why: str
    tests: tuple[str, ...]  # regular expressions that match all of "file::class.method"
    message: str = ""  # a regular expression that occurs in the message

    def covers(self, result: Result) -> bool:
        """Whether this explains a failure."""
        named = any(re.fullmatch(expression, str(result.test)) for expression in self.tests)
        return named and re.search(self.message, result.message, re.S) is not None


def read(path: Path) -> list[Failure]:
    """The failures in a TOML file."""
    return [
        Failure(entry["why"].strip(), tuple(entry["tests"]), entry.get("message", ""))
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("failure", [])
    ]


def explanation(result: Result, known: Iterable[Failure]) -> Failure | None:
    """The first that covers a failure."""
    return next((one for one in known if one.covers(result)), None) if result.questionable else None


def outdated(results: Iterable[Result], known: Iterable[Failure]) -> list[str]:
    """The expressions whose tests were run and fail so no longer."""
    results = list(results)
    found = []
    for one in known:
        for expression in one.tests:
            alone = Failure(one.why, (expression,), one.message)
            named = [result for result in results if re.fullmatch(expression, str(result.test))]
            if named and not any(result.questionable and alone.covers(result) for result in named):
                found.append(f"{expression} no longer fails so: {one.why}")
    return found
