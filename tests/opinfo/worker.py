"""Tasks in processes of their own, which are replaced when they crash or lose the device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..support import workers
from .results import Result, Verdict
from .tasks import Task

DEVICE_LOST = re.compile(r"device\W+(was |is )?(lost|removed|hung|reset)", re.IGNORECASE)


@dataclass(frozen=True)
class Work:
    """Performing tasks, and what becomes of those that are never done."""

    perform: Callable[[Task], Result]

    def prepare(self, task: Task) -> None:
        """Nothing: a task needs no more than the process."""

    def crashed(self, task: Task, message: str) -> Result:
        """The process ended."""
        return Result(task, Verdict.CRASH, message)

    def timed_out(self, task: Task, message: str) -> Result:
        """The process was killed."""
        return Result(task, Verdict.TIMEOUT, message)

    def spoils(self, result: Result) -> bool:
        """The tasks after a loss get a device that works."""
        return DEVICE_LOST.search(result.message) is not None


def run(tasks: Iterable[Task], perform: Callable[[Task], Result], jobs: int, timeout: float) -> Iterator[Result]:
    """Perform the tasks in `jobs` processes, each within `timeout` seconds; give each result when
    it is there.

    `perform` is pickled: a function of a module, or a partial one.
    """
    return workers.run(Work(perform), [iter(tasks)] * jobs, timeout)
