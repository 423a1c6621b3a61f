"""The results of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from ..support import json_lines


@dataclass(frozen=True, order=True)
class Test:
    """A test: its file as it was given, its class and its name."""

    __test__ = False  # pytest must not collect it

    file: str
    case: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.case}::{self.name}"


class Verdict(str, Enum):
    """The verdict on a test."""

    CRASH = "crash"
    TIMEOUT = "timeout"
    ERROR = "error"  # an exception that is no assertion
    FAIL = "fail"  # an assertion, or a success where PyTorch expects a failure
    PASS = "pass"
    SKIP = "skip"  # also for a failure that PyTorch expects


FINE = (Verdict.PASS, Verdict.SKIP)
# Verdicts on the process that ran the test, which may differ in another run.
INTERRUPTED = (Verdict.CRASH, Verdict.TIMEOUT)


@dataclass(frozen=True)
class Result:
    """The result of a test."""

    test: Test
    verdict: Verdict
    message: str = ""
    fallbacks: dict[str, int] = field(default_factory=dict)  # how often each operator ran on the CPU
    seconds: float = 0.0
    control: Verdict | None = None  # of the same test on the CPU, which is run if it fails on the device

    @property
    def wrong(self) -> bool:
        """Whether the test failed, crashed or took too long."""
        return self.verdict not in FINE

    @property
    def shared(self) -> bool:
        """Whether the test fails on the CPU too, so that it is not a fault of the device."""
        return self.wrong and self.control is not None and self.control not in FINE

    @property
    def questionable(self) -> bool:
        """Whether the result needs an explanation."""
        return self.wrong and not self.shared

    def __str__(self) -> str:
        return f"{self.test}: {self.verdict.value}: {self.message[:300]}"

    def to_line(self) -> dict[str, Any]:
        """The result as a JSON line."""
        values = asdict(self)
        return {**values.pop("test"), **values}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Result:
        """The inverse of `to_line`."""
        values = dict(line)
        test = Test(values.pop("file"), values.pop("case"), values.pop("name"))
        control = values.pop("control", None)
        return cls(test, Verdict(values.pop("verdict")), control=control and Verdict(control), **values)


# Separates the libraries of a subject some of whose tests were run again with later libraries.
LATER = ", then "


@dataclass(frozen=True)
class Subject:
    """What was tested. Results can be combined if their subjects are equal and their files have not
    changed.
    """

    torch: str
    adapter: str
    libraries: str  # a digest of the engine and the plugin
    sources: str  # where PyTorch's files are from
    files: dict[str, str] = field(default_factory=dict, compare=False)  # a digest of each


class OtherSubjectError(Exception):
    """Results of another subject must not be mixed with these."""


class ResultFile:
    """The results of a subject, including those of an earlier run with the same subject."""

    def __init__(self, path: Path, subject: Subject, fresh: bool = False) -> None:
        """Open `path`. With `fresh`, or if it has another subject's results, it starts empty."""
        self.results: dict[Test, Result] = {}
        if not fresh and path.exists() and json_lines.read(path)[0]:
            before, found = read_all(path)
            if before == subject:
                files = {**before.files, **subject.files}
                self.results = {
                    test: one
                    for test, one in found.items()
                    if one.verdict not in INTERRUPTED and before.files.get(test.file) == files[test.file]
                }
                subject = replace(subject, files=files)
        self._file = json_lines.LineFile(path, asdict(subject), (one.to_line() for one in self.results.values()))

    def add(self, result: Result) -> None:
        """Store a result, on disk at once."""
        self.results[result.test] = result
        self._file.add(result.to_line())

    @classmethod
    def of_later_libraries(cls, path: Path, subject: Subject, again: Collection[Test]) -> ResultFile:
        """Open the results of other libraries, to replace those of the tests `again`.

        All other results stay, including crashes and time-outs.
        """
        before, found = read_all(path)
        if replace(before, libraries=subject.libraries) != subject:
            raise OtherSubjectError(f"{path} has results of {before}, and this is {subject}")
        libraries = before.libraries
        if subject.libraries not in libraries.split(LATER):
            libraries += LATER + subject.libraries
        file = cls(path, replace(before, libraries=libraries), fresh=True)
        for test, one in found.items():
            if test not in again:
                file.add(one)
        return file

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_all(path: Path) -> tuple[Subject, dict[Test, Result]]:
    """The subject and all results of a file, including crashes and time-outs."""
    subject, lines = json_lines.read(path)
    results = map(Result.from_line, lines)
    return Subject(**subject), {result.test: result for result in results}
