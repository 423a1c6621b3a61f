"""The known failures, with their reasons: docs/data/device_generic_differences.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..support import torch_versions
from .results import Result, Test

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Difference:
    """Tests that fail with such a message, and the reason."""

    why: str
    tests: tuple[str, ...]  # regular expressions that match all of "file::class::name"
    message: str = ""  # a regular expression that occurs in the message

    def names(self, test: Test) -> bool:
        """Whether this is about a test."""
        return any(re.fullmatch(expression, str(test)) for expression in self.tests)

    def covers(self, result: Result) -> bool:
        """Whether this explains a failure."""
        return self.names(result.test) and re.search(self.message, result.message) is not None


def read(path: Path, torch: str) -> list[Difference]:
    """The differences in a TOML file that apply to a version of torch, such as "2.14.1"."""
    return [
        Difference(entry["why"].strip(), tuple(entry["tests"]), entry.get("message", ""))
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("difference", [])
        if torch_versions.holds(entry, torch)
    ]


def explanation(result: Result, known: Iterable[Difference]) -> Difference | None:
    """The first difference that covers a failure."""
    return next((one for one in known if one.covers(result)), None) if result.questionable else None


def outdated(results: Iterable[Result], known: Iterable[Difference], everything: Iterable[Test]) -> list[str]:
    """The expressions that explain nothing, although all tests that they match were run."""
    ran = {result.test: result for result in results}
    everything = list(everything)
    found = []
    for one in known:
        for expression in one.tests:
            named = [test for test in everything if re.fullmatch(expression, str(test))]
            whole = all(test in ran for test in named)
            if named and whole and not any(ran[test].questionable and one.covers(ran[test]) for test in named):
                found.append(f"{expression} no longer fails so: {one.why}")
    return found
