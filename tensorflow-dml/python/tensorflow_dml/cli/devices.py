"""`devices`: the table of adapters. Works without TensorFlow."""

from __future__ import annotations

import json
import sys
from typing import Any

from tensorflow_dml import library

_COLUMNS = ("device", "name", "type", "memory", "driver", "Vulkan")


def run(as_json: bool) -> int:
    """Print the adapters and return the exit status: 1 if there is none."""
    try:
        found = library.information()
    except OSError as error:
        print(f"{library.path()} does not load: {error}", file=sys.stderr)
        return 1
    devices = found.get("devices", [])
    if as_json:
        print(json.dumps(devices, indent=2))
    elif devices:
        _print([_row(device) for device in devices])
    else:
        print(f"no devices: {found.get('error') or 'no adapter has a Vulkan driver'}", file=sys.stderr)
    return 0 if devices else 1


def size(count: int) -> str:
    """Return a number of bytes for people."""
    return f"{count / 2**30:.1f} GiB"


def _row(device: dict[str, Any]) -> tuple[str, ...]:
    driver = f"{device['driver']} {device['driver_info']}".strip()
    return (
        f"GPU:{device['index']}",
        device["name"],
        device["kind"],
        size(device["memory_total"]),
        driver,
        device["api_version"],
    )


def _print(rows: list[tuple[str, ...]]) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(row[i]) for row in [_COLUMNS, *rows]) for i in range(len(_COLUMNS))]
        for row in [_COLUMNS, *rows]:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(*_COLUMNS)
    for row in rows:
        table.add_row(*row)
    console = Console()
    # In a narrow window the lines of a whole table are wrapped, instead of truncated names.
    console.width = max(console.width, 132)
    console.print(table)
