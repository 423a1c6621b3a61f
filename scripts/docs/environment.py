"""Generates the tables of docs/reference/environment.md from crates/environment/variables.toml."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import tomllib
from marked import replace


def files(root: Path) -> dict[Path, str]:
    """Return the page."""
    table = tomllib.loads((root / "crates" / "environment" / "variables.toml").read_text("utf-8"))
    parts = []
    for group, variables in groupby(table["variable"], lambda variable: variable["group"]):
        parts.append(f"## {group}\n\n| variable | when unset | meaning |\n|---|---|---|")
        parts += [f"| `{each['name']}` | {each['default']} | {each['meaning']} |" for each in variables]
        parts.append("")
    page = root / "docs" / "reference" / "environment.md"
    return {page: replace(page.read_text("utf-8"), "variables", "\n".join(parts))}
