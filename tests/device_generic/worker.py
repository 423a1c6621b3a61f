"""Tests in processes of their own, which are replaced if they crash or lose the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..opinfo.worker import DEVICE_LOST
from ..support import workers
from . import instantiation
from .results import Result, Test, Verdict
from .trial import described, run_test

COLLECTION_SECONDS = 600.0


@dataclass(frozen=True)
class Work:
    """Runs tests of these files, by their names, on a device."""

    files: Mapping[str, Path]
    device: str

    def prepare(self, test: Test) -> None:
        """Import the test's file, once in a process."""
        instantiation.cases(self.files[test.file], self.device)

    def perform(self, test: Test) -> Result:
        """Run a test."""
        cases = instantiation.cases(self.files[test.file], self.device)
        print(test, flush=True)  # The last line that is printed names the test that ended the process.
        return run_test(cases[test.case], test, self.device)

    def crashed(self, test: Test, message: str) -> Result:
        """The process ended."""
        return Result(test, Verdict.CRASH, message)

    def timed_out(self, test: Test, message: str) -> Result:
        """The process was killed."""
        return Result(test, Verdict.TIMEOUT, message)

    def spoils(self, result: Result) -> bool:
        """After a device loss, the following tests need a working device."""
        return DEVICE_LOST.search(result.message) is not None


@dataclass(frozen=True)
class Control:
    """Runs the same tests on the CPU."""

    work: Work

    def prepare(self, test: Test) -> None:
        """Import the test's file for the CPU."""
        instantiation.cases(self.work.files[test.file], "cpu")

    def perform(self, test: Test) -> tuple[Test, Verdict]:
        """Run the test's counterpart."""
        case, name = instantiation.renamed(test.case, test.name, self.work.device, "cpu")
        cases = instantiation.cases(self.work.files[test.file], "cpu")
        if case not in cases or not hasattr(cases[case], name):
            return test, Verdict.SKIP
        return test, run_test(cases[case], Test(test.file, case, name), "cpu").verdict

    def crashed(self, test: Test, message: str) -> tuple[Test, Verdict]:
        """The process ended."""
        return test, Verdict.CRASH

    def timed_out(self, test: Test, message: str) -> tuple[Test, Verdict]:
        """The process was killed."""
        return test, Verdict.TIMEOUT

    def spoils(self, result: tuple[Test, Verdict]) -> bool:
        """Never: nothing runs on the device."""
        return False


@dataclass(frozen=True)
class Collection:
    """The tests of a file, or why it could not be imported."""

    file: str
    tests: tuple[Test, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Collecting:
    """Finds the tests of these files, by their names."""

    files: Mapping[str, Path]
    device: str

    def prepare(self, name: str) -> None:
        """Nothing to prepare: importing the file is the task."""

    def perform(self, name: str) -> Collection:
        """Import a file and list its tests."""
        try:
            cases = instantiation.cases(self.files[name], self.device)
        except (Exception, SystemExit) as error:
            return Collection(name, error=described(error))
        tests = [Test(name, label, test) for label, case in cases.items() for test in instantiation.names(case)]
        return Collection(name, tuple(tests))

    def crashed(self, name: str, message: str) -> Collection:
        """The process ended."""
        return Collection(name, error=message)

    def timed_out(self, name: str, message: str) -> Collection:
        """The process was killed."""
        return Collection(name, error=message)

    def spoils(self, collection: Collection) -> bool:
        """Never: nothing runs on the device."""
        return False


def collect(files: Mapping[str, Path], device: str, jobs: int) -> list[Collection]:
    """The tests of every file, in the order of files."""
    lanes = [iter(files)] * min(jobs, len(files))
    found = {one.file: one for one in workers.run(Collecting(files, device), lanes, COLLECTION_SECONDS)}
    return [found[name] for name in files]


def run(tests: Iterable[Test], files: Mapping[str, Path], device: str, jobs: int, timeout: float) -> Iterator[Result]:
    """Run the tests in `jobs` processes, each within `timeout` seconds; yield each result when it
    is available.
    """
    return workers.run(Work(files, device), [iter(tests)] * jobs, timeout)


def control(
    tests: Iterable[Test], files: Mapping[str, Path], device: str, jobs: int, timeout: float
) -> Iterator[tuple[Test, Verdict]]:
    """The verdicts of the same tests on the CPU, where they are instantiated for it."""
    return workers.run(Control(Work(files, device)), [iter(tests)] * jobs, timeout)
