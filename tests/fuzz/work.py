"""Cases in worker processes, each of which has a further process for the CPU."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch

from ..opinfo.worker import DEVICE_LOST
from ..support import workers
from . import cases
from .reference import Reference, ReferenceFailed
from .trial import Finding, run_case

CRASH, HANG = "crash", "hang"
CPU_SECONDS = 30.0
PART = 20_000
_reference: Reference | None = None


@dataclass(frozen=True)
class Work:
    """Runs cases on a device."""

    device: str

    def prepare(self, number: int) -> None:
        """Start what a case needs besides itself: the CPU's process, the list of operators, and the
        device, which on a busy machine and on a GPU that is played takes minutes.
        """
        global _reference
        if _reference is None:
            _reference = Reference(CPU_SECONDS)
            _reference.start()
            cases.subjects()
            torch.ones(1, device=self.device).cpu()
        with suppress(ReferenceFailed):  # The case meets it again, and says so.
            _reference.wait()

    def perform(self, number: int) -> Finding:
        """Run the case of a number."""
        assert _reference is not None
        return run_case(number, torch.device(self.device), _reference)

    def crashed(self, number: int, message: str) -> Finding:
        """The process ended."""
        return Finding(number, cases.subject(number).name, "", CRASH, message)

    def timed_out(self, number: int, message: str) -> Finding:
        """The process was killed."""
        return Finding(number, cases.subject(number).name, "", HANG, message)

    def spoils(self, finding: Finding) -> bool:
        """After a device loss, the following cases need a working device."""
        return DEVICE_LOST.search(finding.message) is not None


def run(
    numbers: Sequence[int], device: str, jobs: int, timeout: float, until: float, operators: str = ""
) -> Iterator[Finding]:
    """Run the cases of these numbers whose operator's name matches `operators`, in `jobs`
    processes.

    No case is begun after the time `until` (of `time.monotonic`), and none takes longer than
    `timeout` seconds. The cases of an operator mostly run in one process, which then compiles its
    kernels once: in a range of numbers, an idle process takes the next operator with all of its
    cases.
    """
    os.environ["PYTHONHASHSEED"] = "0"  # Some samples are in the order of a set of strings.
    parts = (numbers[first : first + PART] for first in range(0, len(numbers), PART))
    waiting: deque[list[int]] = deque()

    def lane() -> Iterator[int]:
        while True:
            while not waiting:
                part = next(parts, None)
                if part is None:
                    return
                waiting.extend(_by_operator(part, operators))
            for number in waiting.popleft():
                if time.monotonic() > until:
                    return
                yield number

    yield from workers.run(Work(device), [lane() for _ in range(jobs)], timeout)


def _by_operator(numbers: Iterable[int], operators: str) -> list[list[int]]:
    found: dict[str, list[int]] = {}
    for number in numbers:
        name = cases.subject(number).name
        if cases.matches(name, operators):
            found.setdefault(name, []).append(number)
    return list(found.values())
