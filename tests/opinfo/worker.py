"""The processes in which tasks run: killed when they take too long, replaced when they crash or lose the device."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch

from .results import Result, Verdict
from .tasks import Task

START_SECONDS = 180.0
DEVICE_LOST = re.compile(r"device\W+(was |is )?(lost|removed|hung|reset)", re.IGNORECASE)
READY = "ready"


def serve(connection: Connection, perform: Callable[[Task], Result], output: str) -> None:
    """Perform the tasks that come through `connection`, until it is closed; prints go to the file `output`."""
    with open(output, "wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    torch.set_num_threads(1)
    connection.send(READY)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(perform(task))


@dataclass
class Worker:
    """A process, and the task that it runs."""

    perform: Callable[[Task], Result]
    timeout: float  # seconds for a task
    output: Path  # what the process prints
    task: Task | None = None
    deadline: float = 0.0
    process: SpawnProcess | None = None
    connection: Connection = field(init=False)

    def give(self, task: Task) -> None:
        """Have a task run, in a new process if there is none."""
        self.task, self.deadline = task, time.monotonic() + self.timeout
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs, self.perform, str(self.output)), daemon=True)
            self.process.start()
            theirs.close()
            self.deadline += START_SECONDS
        with contextlib.suppress(OSError):  # A process that is gone is noticed when its answer is read.
            self.connection.send(task)

    def receive(self) -> Result | None:
        """What the process sent: the result of its task, or None if it has only started."""
        assert self.task is not None and self.process is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            printed = " ".join(self.output.read_text(errors="replace")[-160:].split()) if self.output.exists() else ""
            self.stop()
            return self._end(Result(self.task, Verdict.CRASH, f"the process ended with {code}: {printed}"))
        if message == READY:
            self.deadline = time.monotonic() + self.timeout
            return None
        assert isinstance(message, Result)
        if DEVICE_LOST.search(message.message):
            self.stop()  # The tasks after it get a device that works.
        return self._end(message)

    def expire(self) -> Result:
        """End the process, whose task took too long."""
        assert self.task is not None
        self.stop()
        return self._end(Result(self.task, Verdict.TIMEOUT, f"more than {self.timeout:g} s"))

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


def run(tasks: Iterable[Task], perform: Callable[[Task], Result], jobs: int, timeout: float) -> Iterator[Result]:
    """Perform the tasks in `jobs` processes, each within `timeout` seconds; give each result when it is there.

    `perform` is pickled: a function of a module, or a partial one.
    """
    waiting = deque(tasks)
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(perform, timeout, Path(folder) / str(index)) for index in range(min(jobs, len(waiting)))]
        try:
            while True:
                for worker in workers:
                    if worker.task is None and waiting:
                        worker.give(waiting.popleft())
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
