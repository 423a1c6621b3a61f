"""A plugin of pytest that records every call of an operator on the device, once each.

`-p tests.gpus.recording` with RECORD_CALLS=FILE; each process writes a file of its own, FILE.<pid>.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from .calls import Calls, Recording

_CALLS = Calls(open(f"{os.environ['RECORD_CALLS']}.{os.getpid()}", "w", encoding="utf-8"))  # noqa: SIM115


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Record while a test runs. What it asserts of its own launches may fail."""
    with Recording(_CALLS):
        return (yield)
