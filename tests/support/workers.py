"""Tasks in separate processes: killed if they take too long, replaced if they crash or are
damaged.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")
Accepted = TypeVar("Accepted", contravariant=True)

START_SECONDS = 180.0
READY = "ready"


class Work(Protocol[Accepted, Result]):
    """What the processes do. It is pickled: an object of a module's class."""

    def prepare(self, task: Accepted) -> None:
        """Prepare a task, for example by imports, which its time does not include; called in a
        process, before `perform`.
        """

    def perform(self, task: Accepted) -> Result:
        """Perform a task; called in a process."""

    def crashed(self, task: Accepted, message: str) -> Result:
        """The result of a task that crashed the process."""

    def timed_out(self, task: Accepted, message: str) -> Result:
        """The result of a task that took too long."""

    def spoils(self, result: Result) -> bool:
        """Whether the tasks after this result need another process."""


def serve(connection: Connection, work: Work[Any, Any], output: str) -> None:
    """Perform the tasks that arrive through `connection`, until it is closed; output goes to the
    file `output`.
    """
    with open(output, "wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    torch.set_num_threads(1)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        work.prepare(task)
        connection.send(READY)
        connection.send(work.perform(task))


@dataclass
class Worker(Generic[Task, Result]):
    """A process, and the task that it performs."""

    work: Work[Task, Result]
    timeout: float  # seconds for a task
    output: Path  # the process's output
    task: Task | None = None
    deadline: float = 0.0
    process: SpawnProcess | None = None
    connection: Connection = field(init=False)

    def give(self, task: Task) -> None:
        """Start performing a task, in a new process if there is none."""
        self.task, self.deadline = task, time.monotonic() + self.timeout + START_SECONDS
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs, self.work, str(self.output)))
            self.process.start()
            theirs.close()
        with contextlib.suppress(OSError):  # The end of a process is detected when its answer is read.
            self.connection.send(task)

    def receive(self) -> Result | None:
        """The message of the process: the result of its task, or None if it is only ready to
        perform it.
        """
        assert self.task is not None and self.process is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            printed = " ".join(self.output.read_text(errors="replace")[-160:].split()) if self.output.exists() else ""
            self.stop()
            return self._end(self.work.crashed(self.task, f"the process ended with {code}: {printed}"))
        if message == READY:
            self.deadline = time.monotonic() + self.timeout
            return None
        result: Result = message
        if self.work.spoils(result):
            self.stop()
        return self._end(result)

    def expire(self) -> Result:
        """Kill the process, whose task took too long."""
        assert self.task is not None
        self.stop()
        return self._end(self.work.timed_out(self.task, f"more than {self.timeout:g} s"))

    def stop(self) -> None:
        """End the process if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None

    def _end(self, result: Result) -> Result:
        self.task = None
        return result


def run(work: Work[Task, Result], lanes: Sequence[Iterator[Task]], timeout: float) -> Iterator[Result]:
    """Perform the tasks, each within `timeout` seconds; yield each result when it is available.

    There is a process for each lane, which takes that lane's tasks and, when there are none left,
    those of the others. Lanes may be the same iterator.
    """
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(work, timeout, Path(folder) / str(index)) for index in range(len(lanes))]
        try:
            while True:
                for index, worker in enumerate(workers):
                    task = _next([*lanes[index:], *lanes[:index]]) if worker.task is None else None
                    if task is not None:
                        worker.give(task)
                busy = {worker.connection: worker for worker in workers if worker.task is not None}
                if not busy:
                    return
                now = time.monotonic()
                ready = wait(list(busy), timeout=max(0.0, min(worker.deadline for worker in busy.values()) - now))
                for connection, worker in busy.items():
                    result = worker.receive() if connection in ready else None
                    if worker.task is not None and time.monotonic() > worker.deadline:
                        result = worker.expire()
                    if result is not None:
                        yield result
        finally:
            for worker in workers:
                worker.stop()


def _next(lanes: Sequence[Iterator[Task]]) -> Task | None:
    return next((task for lane in lanes for task in lane), None)
