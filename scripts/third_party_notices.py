#!/usr/bin/env python3
"""Write THIRD-PARTY-NOTICES.txt, which is in every wheel, or check with --check that it is current.

It has the notices of code that is linked into the libraries or that they are derived from: the
texts in scripts/notices, and the licence of every crate that one of these links on some platform.
Crates that run only during compilation (procedural macros, build scripts) are not in it. For a
crate that offers several licences the first in the list below is used.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
TEXTS = ROOT / "scripts" / "notices"
# The crates that are built as libraries, for PyTorch and TensorFlow, and Rust's names of the
# wheels' platforms.
LIBRARIES = ("dml-torch", "dml-tensorflow")
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
)
# File names of a licence in crates; the preferred licence first.
FILES = {
    "MIT": ("LICENSE-MIT", "LICENSE-MIT.txt", "license-mit", "LICENSE", "LICENSE.md", "LICENSE.txt"),
    "ISC": ("LICENSE", "LICENSE.txt"),
    "BSD-2-Clause": ("LICENSE-BSD", "LICENSE"),
    "Apache-2.0": ("LICENSE-APACHE", "LICENSE", "LICENSE.txt"),
}
RULE = "=" * 100
HEAD = """\
Third-party notices of torch-dml

The libraries of a wheel contain, or follow, the work of others that is listed here with its
notices. torch-dml itself is under LICENSE-MIT or LICENSE-APACHE, at your option.

Written by scripts/third_party_notices.py, from Cargo.lock and scripts/notices.
"""


def linked(platform: str) -> dict[str, dict[str, Any]]:
    """Return the packages from registries that are linked into the libraries on a platform, by
    id.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    left = [name for name, package in packages.items() if package["name"] in LIBRARIES]
    seen: dict[str, dict[str, Any]] = {}
    while left:
        name = left.pop()
        kinds = {kind for target in packages[name]["targets"] for kind in target["kind"]}
        if name not in seen and "proc-macro" not in kinds:
            seen[name] = packages[name]
            needs = [need for need in nodes[name]["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]
            left += [need["pkg"] for need in needs]
    return {name: package for name, package in seen.items() if package["source"]}


def licence_of(name: str, expression: str) -> str:
    """Return the preferred licence of an expression: "MIT" for "Apache-2.0 OR MIT"."""
    offered = re.split(r" OR |/", expression)
    for licence in FILES:
        if licence in offered:
            return licence
    raise SystemExit(f"{name}: none of {expression!r} is in FILES of {Path(__file__).name}")


def text_of(package: dict[str, Any], licence: str) -> str:
    """Return the text of a crate's licence."""
    folder = Path(package["manifest_path"]).parent
    for file in (folder / name for name in FILES[licence]):
        if file.is_file():
            lines = file.read_text(encoding="utf-8").replace("\f", "").splitlines()
            return "\n".join(line.rstrip() for line in lines).strip()
    if licence == "Apache-2.0":  # Its text is the same for all crates.
        authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
        where = "Apache License, Version 2.0: the text is that of LICENSE-APACHE, beside this file."
        return f"Copyright (c) {authors}\n\n{where}"
    raise SystemExit(f"{package['name']}: no file has the text of {licence}")


def notices() -> str:
    """Return the text of the whole file."""
    packages: dict[str, dict[str, Any]] = {}
    for platform in PLATFORMS:
        packages |= linked(platform)
    # The crates of one project share a text.
    by_text: dict[tuple[str, str], list[str]] = {}
    for package in sorted(packages.values(), key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']}"
        licence = licence_of(name, package["license"] or "none")
        by_text.setdefault((licence, text_of(package, licence)), []).append(name)
    parts = [HEAD]
    parts += [file.read_text(encoding="utf-8").strip() + "\n" for file in sorted(TEXTS.glob("*.txt"))]
    parts += [f"Crates under {licence}: {', '.join(names)}\n\n{text}\n" for (licence, text), names in by_text.items()]
    return f"\n{RULE}\n\n".join(parts)


def main() -> int:
    """Write the file, or check that it is current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not current")
    options = parser.parse_args()
    text = notices()
    if options.check:
        if NOTICES.is_file() and NOTICES.read_text(encoding="utf-8") == text:
            return 0
        print(f"{NOTICES.name} is not current: run scripts/third_party_notices.py", file=sys.stderr)
        return 1
    NOTICES.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
