"""Tasks in separate processes, which are replaced if they crash or lose the device."""

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
    """Performs tasks, and creates the results of tasks that did not end."""

    perform: Callable[[Task], Result]

    def prepare(self, task: Task) -> None:
        """Nothing to prepare."""

    def crashed(self, task: Task, message: str) -> Result:
        """The process ended."""
        return Result(task, Verdict.CRASH, message)

    def timed_out(self, task: Task, message: str) -> Result:
        """The process was killed."""
        return Result(task, Verdict.TIMEOUT, message)

    def spoils(self, result: Result) -> bool:
        """After a device loss, the following tasks need a working device."""
        return DEVICE_LOST.search(result.message) is not None


def run(tasks: Iterable[Task], perform: Callable[[Task], Result], jobs: int, timeout: float) -> Iterator[Result]:
    """Perform the tasks in `jobs` processes, each within `timeout` seconds; yield each result when
    it is available.

    `perform` is pickled: a function of a module, or a partial one.
    """
    return workers.run(Work(perform), [iter(tasks)] * jobs, timeout)
