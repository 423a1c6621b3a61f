"""Cases in worker processes, each of which has a process for the CPU beside it."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..opinfo.worker import DEVICE_LOST
from ..support import workers
from . import cases
from .reference import Reference
from .trial import Finding, run_case

CRASH, HANG = "crash", "hang"
CPU_SECONDS = 60.0
_reference: Reference | None = None


@dataclass(frozen=True)
class Work:
    """Running cases on a device."""

    device: str

    def perform(self, number: int) -> Finding:
        """Run the case of a number."""
        global _reference
        if _reference is None:
            _reference = Reference(CPU_SECONDS)
        return run_case(number, torch.device(self.device), _reference)

    def crashed(self, number: int, message: str) -> Finding:
        """The process ended."""
        return Finding(number, cases.subject(number).name, "", CRASH, message)

    def timed_out(self, number: int, message: str) -> Finding:
        """The process was killed."""
        return Finding(number, cases.subject(number).name, "", HANG, message)

    def spoils(self, finding: Finding) -> bool:
        """The cases after a loss get a device that works."""
        return DEVICE_LOST.search(finding.message) is not None


def run(numbers: range, device: str, jobs: int, timeout: float, until: float, operators: str = "") -> Iterator[Finding]:
    """
    Run the cases of these numbers whose operator's name has a match of `operators`, in `jobs` processes.

    No case is begun after the time `until` (of `time.monotonic`), and none takes longer than `timeout` seconds. An
    operator's cases are mostly those of one process, which then compiles its kernels once.
    """
    lanes = [_lane(numbers, lane, jobs, until, operators) for lane in range(jobs)]
    yield from workers.run(Work(device), lanes, timeout)


def _lane(numbers: range, lane: int, jobs: int, until: float, operators: str) -> Iterator[int]:
    for number in numbers:
        if time.monotonic() > until:
            return
        name = cases.subject(number).name
        if zlib.crc32(name.encode()) % jobs == lane and cases.matches(name, operators):
            yield number
