"""The file of adapter records that the engine writes: reading it, and writing a valid one."""

from __future__ import annotations

from pathlib import Path

_HEADER = 64


def file(folder: Path) -> Path:
    """Return the only record file in a folder."""
    (found,) = folder.glob("notes-*.bin")
    return found


def read(folder: Path) -> dict[str, str]:
    """Return the records in a folder by name; empty if there is no file."""
    if not list(folder.glob("notes-*.bin")):
        return {}
    lines = file(folder).read_bytes()[_HEADER:].decode().splitlines()
    return dict(line.split("\t") for line in lines)


def rewritten(known: bytes, content: bytes) -> bytes:
    """Return a valid file with the header of a known one and other contents."""
    return resealed(known[:40] + len(content).to_bytes(8, "little") + checksum(content).to_bytes(8, "little"), content)


def resealed(header: bytes, content: bytes) -> bytes:
    """Return a file with a valid checksum of the header's first 56 bytes."""
    return header[:56] + checksum(header[:56]).to_bytes(8, "little") + content


def checksum(content: bytes) -> int:
    """Return the checksum that the files' headers contain."""
    prime, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    whole = len(content) // 8 * 8
    words = [int.from_bytes(content[i : i + 8], "little") for i in range(0, whole, 8)]
    value = prime
    for word in [len(content), *words, *content[whole:]]:
        value = (value ^ word) * prime & mask
        value ^= value >> 29
    return value
