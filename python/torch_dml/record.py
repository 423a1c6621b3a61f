"""The record of the last run, for `python -m torch_dml report`: fallbacks to the CPU, and the error
that ended it.

There is none unless the user asks for it: with TORCH_DML_RECORD=1 a process that uses the device
writes one when it ends, which replaces the previous one. It stays on the machine, in the folder of
compiled kernels, and is only read by `report`.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from torch_dml import environment
from torch_dml.scrub import scrub

_NAME = "last-run.json"
# The beginning of a long message is enough.
_LENGTH = 400


def file() -> Path | None:
    """Return the path of the record; None if the system has no folder for it."""
    chosen = environment.get("TORCH_DML_CACHE_DIR")
    if chosen:
        return Path(chosen) / _NAME
    # The folder of crates/gpu/src/kept/folder.rs.
    get = os.environ.get
    if sys.platform == "win32":
        base = get("LOCALAPPDATA", "")
    elif os.path.isabs(get("XDG_CACHE_HOME", "")):
        base = get("XDG_CACHE_HOME", "")
    else:
        base = os.path.join(get("HOME", ""), ".cache") if get("HOME") else ""
    return Path(base) / "torch-dml" / _NAME if base else None


def read() -> dict[str, Any] | None:
    """Return the record of the last run that wrote one; None if there is none."""
    path = file()
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def start() -> None:
    """Let this process write its record when it ends, if TORCH_DML_RECORD asks for it."""
    if environment.get("TORCH_DML_RECORD") == "1":
        run = _Run()
        sys.excepthook = run.note
        atexit.register(run.write)


class _Run:
    def __init__(self) -> None:
        self.process, self.began, self.before = os.getpid(), time.monotonic(), sys.excepthook
        self.error: dict[str, str] | None = None

    def note(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            self.error = {"type": kind.__name__, "message": scrub(str(error))[:_LENGTH]}
        self.before(kind, error, trace)

    def write(self) -> None:
        path = file()
        # A forked child inherits its parent's exit handlers.
        if path is None or os.getpid() != self.process:
            return
        from torch_dml import __version__, fallback

        torch = sys.modules["torch"]
        record = {
            "torch_dml": __version__,
            "torch": str(torch.__version__),
            "seconds": round(time.monotonic() - self.began),
            "fallbacks": fallback.fallbacks(),
            "error": self.error,
        }
        staged = path.with_name(f"{_NAME}.{self.process}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged.write_text(json.dumps(record), encoding="utf-8")
            staged.replace(path)
        except OSError as error:
            # A program does not fail because of its record.
            print(f"torch-dml: no record of this run: {error}", file=sys.stderr)
