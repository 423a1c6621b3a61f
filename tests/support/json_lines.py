"""Results of a run, kept so that it can be resumed: JSON lines, the first of which says what
ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO


class LineFile:
    """A file of results that grows while they come."""

    def __init__(self, path: Path, subject: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()) -> None:
        """Begin the file anew: what runs, and results that are kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w")
        self.add(subject)
        for line in lines:
            self.add(line)

    def add(self, line: Mapping[str, Any]) -> None:
        """Keep a result, on disk at once."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> tuple[Any, list[Any]]:
    """What ran (None where that cannot be read), and every result; half a line that a killed run
    left is none.
    """
    first, *lines = path.read_text().splitlines() or [""]
    return _parsed(first), [value for line in lines if (value := _parsed(line)) is not None]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
