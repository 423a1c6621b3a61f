"""Results of tests, stored as JSON lines."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


class Verdict(enum.Enum):
    """How a test ended."""

    PASS = "passed"
    FAIL = "failed"
    SKIP = "skipped"
    CRASH = "crashed"
    SLOW = "too slow"


@dataclass(frozen=True, order=True)
class Test:
    """A test of a file below tensorflow/python; its name is "class.method"."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.name}"


@dataclass
class Result:
    """How a test ended on the device."""

    test: Test
    verdict: Verdict
    message: str
    fallbacks: list[str]
    seconds: float
    library: str  # a digest of the plugin that ran it
    control: Verdict | None = None  # how it ended on the CPU without the plugin, if it was run there

    @property
    def wrong(self) -> bool:
        """Whether the test was neither passed nor skipped."""
        return self.verdict not in (Verdict.PASS, Verdict.SKIP)

    @property
    def shared(self) -> bool:
        """Whether it is wrong on the CPU too, so that it says nothing of the device."""
        return self.wrong and self.control is not None and self.control not in (Verdict.PASS, Verdict.SKIP)

    @property
    def questionable(self) -> bool:
        """Whether it is wrong on the device alone."""
        return self.wrong and not self.shared

    def __str__(self) -> str:
        return f"{self.test}: {self.verdict.value}: {self.summary[:300]}"

    @property
    def summary(self) -> str:
        """The line of the message that names the error: the last one without an indent."""
        lines = [line for line in self.message.splitlines() if line.strip() and not line.startswith(" ")]
        named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Failure)\b", line)]
        return (named or lines or [""])[-1]


class ResultFile:
    """The results so far; each later line about a test replaces the earlier one."""

    def __init__(self, path: Path, fresh: bool) -> None:
        """Read what an earlier run stored, unless `fresh`."""
        self.results: dict[Test, Result] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not fresh:
            for line in path.read_text(encoding="utf-8").splitlines():
                result = _parse(line)
                self.results[result.test] = result
        self._file = path.open("w" if fresh else "a", encoding="utf-8")

    def add(self, result: Result) -> None:
        """Store a result."""
        self.results[result.test] = result
        self._file.write(json.dumps(asdict(result), default=lambda value: value.value) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _parse(line: str) -> Result:
    fields = json.loads(line)
    fields["test"] = Test(**fields["test"])
    fields["verdict"] = Verdict(fields["verdict"])
    fields["control"] = Verdict(fields["control"]) if fields["control"] else None
    return Result(**fields)


def libraries(results: Iterable[Result]) -> set[str]:
    """The plugins that results are of."""
    return {result.library for result in results}
