"""Lines of prose are at most 100 columns long: tables, code and what a program writes may be
longer.
"""

from __future__ import annotations

import re
from pathlib import Path

WIDTH = 100
GENERATED = re.compile(r"do not edit\.")


def too_long(root: Path) -> list[str]:
    """Return where a page's prose is wider than it may be."""
    pages = [root / "README.md", root / "README.zh.md", *sorted((root / "docs").rglob("*.md"))]
    problems = []
    for page in pages:
        text = page.read_text("utf-8")
        if GENERATED.search(text):
            continue
        code = written = False
        for number, line in enumerate(text.splitlines(), 1):
            written = (written or line.startswith("<!-- begin:")) and not line.startswith("<!-- end:")
            if line.lstrip().startswith("```"):
                code = not code
            elif not code and not written and len(line) > WIDTH and not _may_be_long(line):
                problems.append(f"{page.relative_to(root)}:{number}: {len(line)} columns, {WIDTH} are allowed")
    return problems


def _may_be_long(line: str) -> bool:
    # A table's row, or a line that cannot be broken: one word, or a link, after what begins the
    # line.
    return line.lstrip().startswith(("|", "<")) or " " not in line.strip().lstrip("-*> ")
