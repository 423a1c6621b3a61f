"""The worker processes: one for each file, and one more for each test that ends its process."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .results import Result, Test, Verdict

TESTS = Path(__file__).resolve().parents[1]
START = 300.0  # seconds for the imports of TensorFlow and of a file


@dataclass
class Runner:
    """Runs tests of files in processes, with a limit of seconds for each test."""

    tree: Path
    library: Path | None  # None for the CPU alone
    digest: str
    limit: float
    tests: dict[str, list[str]] = field(default_factory=dict)  # of each file
    broken: dict[str, str] = field(default_factory=dict)  # files that cannot be imported, and why

    def run(
        self, file: str, pattern: str = "", done: Sequence[str] = (), only: Sequence[str] | None = None
    ) -> Iterator[Result]:
        """Run the tests of a file whose names have a match of `pattern`, are in `only` if that is
        given, and not in `done`.
        """
        done = list(done)
        while True:
            running: str | None = None
            lost: tuple[Verdict, str] | None = None
            for event in self._events(file, {"pattern": pattern, "done": done, "only": only}):
                if isinstance(event, tuple):
                    lost = event
                elif "tests" in event:
                    self.tests[file] = event["tests"]
                elif "start" in event:
                    running = event["start"]
                else:
                    done.append(event["end"])
                    running = None
                    yield self._result(file, event)
            if lost is None:
                return
            if running is None:
                # The process ended after its tests, if it has named them.
                if file not in self.tests:
                    self.broken[file] = lost[1]
                return
            done.append(running)
            yield Result(Test(file, running), *lost, [], self.limit, self.digest)

    def _result(self, file: str, event: dict[str, Any]) -> Result:
        test, verdict = Test(file, event["end"]), Verdict(event["verdict"])
        return Result(test, verdict, event["message"], event["fallbacks"], event["seconds"], self.digest)

    def _events(self, file: str, choice: dict[str, Any]) -> Iterator[dict[str, Any] | tuple[Verdict, str]]:
        """What a process says; at last how and why it was lost, if it was."""
        with tempfile.TemporaryDirectory(prefix="tensorflow-tests-") as folder, open(f"{folder}/log", "w+b") as log:
            chosen = Path(folder) / "choice.json"
            chosen.write_text(json.dumps(choice), encoding="utf-8")
            reading, writing = os.pipe()
            command = [sys.executable, "-m", "upstream.worker", str(self.tree), file]
            command += ["--report", str(writing), "--choice", str(chosen)]
            command += ["--library", str(self.library)] if self.library else []
            environment = os.environ | {"TEST_TMPDIR": f"{folder}/"}
            process = subprocess.Popen(
                command,
                cwd=TESTS,
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                pass_fds=[writing],
            )
            os.close(writing)
            try:
                for line in _lines(reading, self.limit):
                    if line is None:
                        yield Verdict.SLOW, f"more than {self.limit:.0f} s"
                        return
                    yield json.loads(line)
            finally:
                os.close(reading)
                process.kill() if process.poll() is None and not _ended(process) else None
                process.wait()
            if process.returncode != 0:
                log.seek(0)
                text = log.read().decode(errors="replace")
                yield Verdict.CRASH, f"exit status {process.returncode}: {text[-2000:]}"


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process that has closed its report ends by itself."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return False
    return True


def _lines(reading: int, limit: float) -> Iterator[str | None]:
    """Lines of a pipe until its end; None, and no more, after `limit` seconds without one."""
    pending = b""
    until = time.monotonic() + START
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while True:
            if not selector.select(max(until - time.monotonic(), 0)):
                yield None
                return
            found = os.read(reading, 65536)
            if not found:
                return
            *whole, pending = (pending + found).split(b"\n")
            for line in whole:
                yield line.decode()
            until = time.monotonic() + limit
