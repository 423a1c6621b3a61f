"""A plugin of pytest that records every call of an operator on the device, once each.

`-p tests.gpus.recording` with RECORD_CALLS=FILE; each process writes a file of its own, FILE.<pid>.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import described


class Recording(TorchDispatchMode):
    """Writes the calls of a test."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; a call that raises is not recorded."""
        line = described(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if line is not None:
            self.calls.add(line)
        return result


class Calls:
    """The calls that this process has seen, in a file."""

    def __init__(self, path: str) -> None:
        self.seen: set[str] = set()
        self.file = open(f"{path}.{os.getpid()}", "w", encoding="utf-8")  # noqa: SIM115

    def add(self, line: str) -> None:
        """Write a call unless it is known."""
        if line not in self.seen:
            self.seen.add(line)
            self.file.write(line + "\n")
            self.file.flush()


_CALLS = Calls(os.environ["RECORD_CALLS"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Record while a test runs. What it asserts of its own launches may fail."""
    with Recording(_CALLS):
        return (yield)
