"""Replaces the part of a page between two markers."""

from __future__ import annotations

import re


def replace(text: str, name: str, content: str) -> str:
    """Return a page's text with new content between `<!-- begin: name -->` and
    `<!-- end: name -->`.
    """
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no markers {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n{content.rstrip()}\n{end}", text)
