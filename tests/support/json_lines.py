"""Results of a run, stored so that it can be resumed: JSON lines, of which the first describes the
run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO


class LineFile:
    """A file to which results are appended."""

    def __init__(self, path: Path, subject: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()) -> None:
        """Start a new file: a description of the run, and results to keep."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w")
        self.add(subject)
        for line in lines:
            self.add(line)

    def add(self, line: Mapping[str, Any]) -> None:
        """Store a result, on disk at once."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> tuple[Any, list[Any]]:
    """The description of the run (None if it cannot be read), and every result; an incomplete line
    of a killed run is ignored.
    """
    first, *lines = path.read_text().splitlines() or [""]
    return _parsed(first), [value for line in lines if (value := _parsed(line)) is not None]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
