"""The table of docs/reference/numerics.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from .trial import DTYPES, SLACK, SUMS, TIMES, Row, Settings

BEGIN, END = "<!-- begin: accuracy -->\n", "<!-- end: accuracy -->\n"
TITLES = {"dml": "dml", "cpu": "CPU", "cuda": "CUDA"}


def write(page: Path, table: str) -> None:
    """Replace the table between the markers, and nothing else. Raises ValueError if there are no
    markers.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the table: {BEGIN.strip()} and {END.strip()}")
    page.write_text(before + begin + table + end + after, encoding="utf-8")


def render(rows: list[Row], adapter: str, settings: Settings) -> str:
    """The table as Markdown."""
    devices = settings.devices
    lines = [
        f"Measured on {adapter} with torch {torch.__version__.partition('+')[0]}, at {settings.points:,} points of a "
        f"function, {settings.exact_points:,} in float64."
        + ("" if "cuda" in devices else " There was no CUDA to measure."),
        "",
        *_table(rows, devices),
        "",
        *_worse(rows),
    ]
    return "\n".join(lines) + "\n"


def _table(rows: list[Row], devices: tuple[str, ...]) -> Iterable[str]:
    found = {(row.name, row.dtype): row for row in rows}
    names = list(dict.fromkeys(row.name for row in rows))
    exact = [name for name in names if _is_exact(row for row in rows if row.name == name)]
    columns = [(dtype, device) for dtype in DTYPES for device in devices]
    yield (
        "| | "
        + " | ".join(f"{str(dtype).removeprefix('torch.')}, {TITLES[device]}" for dtype, device in columns)
        + " |"
    )
    yield "| --- |" + " ---: |" * len(columns)
    for name in names:
        if name not in exact:
            cells = [_cell(found.get((name, dtype)), device) for dtype, device in columns]
            yield f"| `{name}` | " + " | ".join(cells) + " |"
    if exact:
        yield ""
        yield f"Exact everywhere: {', '.join(f'`{name}`' for name in exact)}."


def _is_exact(rows: Iterable[Row]) -> bool:
    return all(error.worst == 0 for row in rows for error in row.errors.values())


def _cell(row: Row | None, device: str) -> str:
    error = row.errors.get(device) if row is not None else None
    if row is None or error is None:
        return ""
    return f"**{error}**" if device == "dml" and row.is_worse else str(error)


def _worse(rows: list[Row]) -> Iterable[str]:
    worse: dict[str, list[str]] = {}
    for row in rows:
        if row.is_worse:
            worse.setdefault(row.name, []).append(str(row.dtype).removeprefix("torch."))
    count = sum(map(len, worse.values()))
    yield (
        f"In {count} of {len(rows)} rows dml's worst error, in bold, is more than {TIMES:g} times "
        f"(of reductions and products: {SUMS:g} times) the worse of the others' and {SLACK} more"
        + (": " if worse else ".")
        + ", ".join(f"`{name}` ({', '.join(dtypes)})" for name, dtypes in worse.items())
        + ("." if worse else "")
    )
