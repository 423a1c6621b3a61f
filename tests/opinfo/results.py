"""The results of a run: JSON lines, of which the first describes the run, and each other is the
result of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from ..support import json_lines
from .tasks import Task


class Verdict(str, Enum):
    """The verdict on a sample or a task, the worst first: a task's verdict is that of its worst
    sample.
    """

    CRASH = "crash"
    TIMEOUT = "timeout"
    ERROR = "error"
    UNIMPLEMENTED = "unimplemented"
    FAIL = "fail"  # another value, shape, dtype or device than the CPU's
    PASS = "pass"
    SKIP = "skip"  # there is nothing to compare with

    @property
    def severity(self) -> int:
        """0 for the worst."""
        return list(Verdict).index(self)


# Verdicts on the process that ran the task, which may differ in another run.
INTERRUPTED = (Verdict.CRASH, Verdict.TIMEOUT)


@dataclass(frozen=True)
class Result:
    """The result of a task."""

    task: Task
    verdict: Verdict
    message: str = ""
    samples: dict[str, int] = field(default_factory=dict)  # number of samples by verdict
    unchecked: int = 0  # samples whose values were not compared, since they are random or not specified
    fallbacks: dict[str, int] = field(default_factory=dict)  # how often each operator ran on the CPU
    backward: bool = False
    seconds: float = 0.0

    @property
    def native(self) -> bool:
        """Correct, without fallbacks to the CPU."""
        return self.verdict is Verdict.PASS and not self.fallbacks

    @property
    def differs(self) -> bool:
        """Whether the result needs an explanation."""
        return self.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.CRASH)

    def __str__(self) -> str:
        return f"{self.task}: {self.verdict.value}: {self.message[:200]}"

    def to_line(self) -> dict[str, Any]:
        """The result as a JSON line."""
        values = asdict(self)
        return {**values.pop("task"), **values}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Result:
        """The inverse of `to_line`."""
        values = dict(line)
        task = Task(values.pop("operator"), values.pop("dtype"))
        return cls(task, Verdict(values.pop("verdict")), **values)


@dataclass(frozen=True)
class Subject:
    """What was run, and how. Results can be combined if their subjects are equal."""

    torch: str
    adapter: str
    libraries: str  # a digest of the engine and the plugin
    seed: int
    max_samples: int
    backward: bool
    compile: bool = False


class ResultFile:
    """The results of a subject, including those of an earlier run with the same subject."""

    def __init__(self, path: Path, subject: Subject, fresh: bool = False) -> None:
        """Open `path`. With `fresh`, or if it has another subject's results, it starts empty."""
        self.subject = subject
        self.results: dict[Task, Result] = {}
        if not fresh and path.exists():
            self.results = _read(path, subject)
        self._file = json_lines.LineFile(path, asdict(subject), (one.to_line() for one in self.results.values()))

    def add(self, result: Result) -> None:
        """Store a result, on disk at once."""
        self.results[result.task] = result
        self._file.add(result.to_line())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_all(path: Path) -> tuple[Subject, dict[Task, Result]]:
    """The subject and all results of a file, including crashes and time-outs."""
    subject, lines = json_lines.read(path)
    results = map(Result.from_line, lines)
    return Subject(**subject), {result.task: result for result in results}


def _read(path: Path, subject: Subject) -> dict[Task, Result]:
    """The results in a file if they are the subject's, without those that may differ in another
    run.
    """
    if json_lines.read(path)[0] != asdict(subject):
        return {}
    _, results = read_all(path)
    return {task: result for task, result in results.items() if result.verdict not in INTERRUPTED}
