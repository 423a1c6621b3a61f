"""Parts of a long run, to be divided among machines or as a sample."""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of all tasks; the part of a task depends on its name only."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard "3/64". Raises ValueError if the text is invalid."""
        index, separator, count = text.partition("/")
        if not separator or not 0 <= int(index) < int(count):
            raise ValueError(f"{text!r} is no shard: i/n with 0 <= i < n")
        return cls(int(index), int(count))

    def __contains__(self, task: object) -> bool:
        return zlib.crc32(str(task).encode()) % self.count == self.index

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
