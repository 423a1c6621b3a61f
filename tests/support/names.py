"""Names of operators, as the words of a text."""

from __future__ import annotations


def words(text: str) -> list[str]:
    """The names in a list of them."""
    return text.split()
