"""One test, and its verdict."""

from __future__ import annotations

import contextlib
import time
import unittest
from collections import Counter
from typing import Any

import torch
from torch_dml import fallbacks

from .results import Result, Test, Verdict

LENGTH = 600  # of a message, in characters


class Recorder(unittest.TestResult):
    """Collects unittest's results of a single test; the first failure counts."""

    def __init__(self) -> None:
        super().__init__()
        self.verdict: Verdict | None = None
        self.message = ""

    def _record(self, verdict: Verdict, message: str) -> None:
        if self.verdict in (None, Verdict.PASS, Verdict.SKIP):
            self.verdict, self.message = verdict, message

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.verdict = self.verdict or Verdict.PASS

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._record(Verdict.SKIP, reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._record(Verdict.SKIP, f"expected to fail: {described(err[1])}"[:LENGTH])

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._record(Verdict.FAIL, "it succeeds, and PyTorch expects a failure")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._record(_verdict(err[1]), described(err[1]))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._record(_verdict(err[1]), described(err[1]))

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._record(_verdict(err[1]), described(err[1]))


def run_test(case: type[unittest.TestCase], test: Test, device: str) -> Result:
    """Run a test in this process. Errors that it leaves pending on the device, such as a bad index,
    count as its failure.
    """
    before, start = Counter(fallbacks()), time.perf_counter()
    recorder = Recorder()
    unittest.TestSuite([case(test.name)]).run(recorder)
    left = _left_behind(device)
    verdict, message = recorder.verdict or Verdict.ERROR, recorder.message
    if recorder.verdict is None:
        message = "unittest said nothing of it"
    elif left is not None and verdict is Verdict.PASS:
        verdict, message = Verdict.ERROR, f"raised after the test: {described(left)}"
    return Result(
        test,
        verdict,
        message[:LENGTH],
        fallbacks=dict(Counter(fallbacks()) - before),
        seconds=round(time.perf_counter() - start, 3),
    )


def described(error: BaseException) -> str:
    """The type and the message of an error.

    PyTorch's tests of its databases raise an error of their own, which names the sample, from the
    one that occurred.
    """
    cause = _cause(error)
    words = f"{type(cause).__name__}: {_words(cause)}"
    _, found, sample = _words(error).rpartition("Caused by ")
    return words[: LENGTH // 2] + (f" ({sample})" if found else "")


def _words(error: BaseException) -> str:
    """An error's message, without PyTorch's instructions for running the test again."""
    text, _, _ = " ".join(str(error).replace("\\n", " ").split()).partition("To execute this test")
    return text.rstrip()


def _cause(error: BaseException) -> BaseException:
    """The original error of one that PyTorch's machinery wrapped."""
    while type(error) is Exception and error.__cause__ is not None:
        error = error.__cause__
    return error


def _verdict(error: BaseException) -> Verdict:
    return Verdict.FAIL if isinstance(_cause(error), AssertionError) else Verdict.ERROR


def _left_behind(device: str) -> Exception | None:
    """A pending error of the device that no operator of the test has raised."""
    found = None
    with contextlib.suppress(AttributeError):  # The CPU has nothing to wait for.
        module = torch.get_device_module(device)
        for index in range(module.device_count()):
            try:
                module.synchronize(index)
            except Exception as error:
                found = error
    return found
