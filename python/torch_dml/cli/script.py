"""A user's script (or module) as a function that runs it as `python` would."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def program(script: str, arguments: Sequence[str], *, module: bool) -> Callable[[], object]:
    """Return a function that runs a script, or a module with that name. Raises RuntimeError if
    there is no such file.
    """
    return _module(script, arguments) if module else _file(script, arguments)


def _file(script: str, arguments: Sequence[str]) -> Callable[[], object]:
    if not Path(script).is_file():
        raise RuntimeError(f"there is no file {script}")

    def run() -> object:
        sys.argv = [script, *arguments]
        sys.path[0] = str(Path(script).resolve().parent)
        return runpy.run_path(script, run_name="__main__")

    return run


def _module(name: str, arguments: Sequence[str]) -> Callable[[], object]:
    def run() -> object:
        sys.argv = [name, *arguments]
        sys.path[0] = str(Path.cwd())
        return runpy.run_module(name, run_name="__main__", alter_sys=True)

    return run
