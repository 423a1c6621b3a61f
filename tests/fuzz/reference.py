"""The CPU's side of a case, in a process that may crash, as some of torch's CPU kernels do."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import torch

from . import cases
from .calls import Variant, execute
from .outcome import Outcome

CPU = torch.device("cpu")
START_SECONDS = 180.0


class ReferenceFailed(Exception):
    """The process crashed, or took too long."""


def serve(connection: Connection, parent: int, make: Callable[[int], cases.Case]) -> None:
    """Run the cases requested through `connection`, until it is closed or the parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    torch.set_num_threads(1)
    cases.subjects()  # What takes seconds is no part of the first case.
    connection.send(None)
    case = None
    while True:
        try:
            number, variant = connection.recv()
        except EOFError:
            return
        if case is None or case.number != number:
            case = make(number)
        connection.send(execute(case.call, CPU, variant))


class Reference:
    """The process, which is started at the first request at the latest."""

    def __init__(self, timeout: float, make: Callable[[int], cases.Case] = cases.make) -> None:
        """`timeout` is in seconds for a call; `make` is pickled."""
        self.timeout, self.make = timeout, make
        self._process: SpawnProcess | None = None
        self._connection: Connection
        self._ready = False

    def start(self) -> None:
        """Start the process if there is none, without waiting for it."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs, os.getpid(), self.make), daemon=True)
            self._process.start()
            self._ready = False
            theirs.close()

    def wait(self) -> None:
        """Wait until the process can run cases. Raises ReferenceFailed."""
        self.start()
        if not self._ready:
            self._receive(START_SECONDS)
            self._ready = True

    def ask(self, number: int, variant: Variant) -> None:
        """Start running a case; the outcome is fetched later. One case at a time."""
        self.wait()
        try:
            self._connection.send((number, variant))
        except OSError as error:
            self.stop()
            raise ReferenceFailed("the process was gone") from error

    def answer(self) -> Outcome:
        """The outcome of the requested case. Raises ReferenceFailed."""
        outcome: Outcome = self._receive(self.timeout)
        return outcome

    def _receive(self, timeout: float) -> Outcome:
        assert self._process is not None
        if not self._connection.poll(timeout):
            self.stop()
            raise ReferenceFailed(f"more than {timeout:g} s")
        try:
            outcome: Outcome = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            code = self._process.exitcode or 0
            self.stop()
            raise ReferenceFailed(f"ended with {signal.Signals(-code).name if code < 0 else code}") from error
        return outcome

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None
