"""Versions of the system symbols that a library needs: `python scripts/release/symbols.py
LIBRARY...` lists them.

manylinux_2_28 stands for AlmaLinux 8: glibc 2.28 and the libstdc++ of GCC 8. Ubuntu 20.04, Debian
10 and all later ones have both.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

# The newest versions that a wheel may need, by auditwheel's policy manylinux_2_28.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}

_NEEDS = re.compile(r"Name: ([A-Z]+)_([0-9.]+)\s")


def versions(library: Path) -> dict[str, set[tuple[int, ...]]]:
    """Return the versions that a library needs, {"GLIBC": {(2, 17), ...}, ...}, for any
    architecture.
    """
    command = ["readelf", "--version-info", "--wide", str(library)]
    environment = {**os.environ, "LC_ALL": "C"}
    return needs(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def needs(text: str) -> dict[str, set[tuple[int, ...]]]:
    """Return the versions in the output of `readelf --version-info`."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for name, number in _NEEDS.findall(text.partition("Version needs section")[2]):
        found.setdefault(name, set()).add(tuple(int(part) for part in number.split(".")))
    return found


def too_new(library: Path) -> list[str]:
    """Return the versions that a library needs and a wheel may not need: ["GLIBC_2.34", ...]."""
    return [
        f"{name}_{'.'.join(map(str, number))}"
        for name, numbers in sorted(versions(library).items())
        for number in sorted(numbers)
        if name not in NEWEST or number > NEWEST[name]
    ]


def serves(needed: str, promised: str) -> bool:
    """Return whether a library with one platform tag, as manylinux_2_17_x86_64, loads on every
    system of another tag.
    """
    tags = [re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", tag) for tag in (needed, promised)]
    (old, new) = [(tag[3], int(tag[1]), int(tag[2])) if tag else ("", 0, 0) for tag in tags]
    return old[0] == new[0] != "" and old[1:] <= new[1:]


def main(files: list[Path]) -> int:
    """Print what each library needs; return 1 if a version is too new."""
    bad = 0
    for file in files:
        newest = {name: ".".join(map(str, max(numbers))) for name, numbers in sorted(versions(file).items())}
        refused = too_new(file)
        bad += len(refused)
        newest_text = " ".join(f"{name}_{number}" for name, number in newest.items())
        print(f"{file.name}: {newest_text}" + (f"  TOO NEW: {', '.join(refused)}" if refused else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
