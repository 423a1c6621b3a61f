"""`devices`: the table of devices. Works without torch."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from torch_dml import engine, vulkan
from torch_dml.sizes import size

_WIDTH = 132


def run(as_json: bool) -> int:
    """Print the devices and return the exit status: 1 if there is none."""
    found = descriptions()
    if as_json:
        print(json.dumps(found, indent=2))
        return 0 if found else 1
    if not found:
        print(vulkan.explain_no_device(engine.why_no_device()), file=sys.stderr)
        return 1
    console = Console()
    # In a narrow window the lines of a whole table are wrapped, instead of a table with truncated
    # names.
    console.width = max(console.width, _WIDTH)
    console.print(_table(found))
    return 0


def descriptions() -> list[dict[str, Any]]:
    """Return the engine's description of every device, with its index."""
    try:
        count = engine.device_count()
    except RuntimeError:
        return []
    return [{"index": index, **engine.device_info(index)} for index in range(count)]


def _table(found: list[dict[str, Any]]) -> Table:
    table = Table(title="torch-dml devices", title_justify="left")
    for title in ("index", "name", "type", "memory", "free", "driver", "Vulkan", "f16", "bf16", "f64", "matrix"):
        table.add_column(title, justify="right" if title in {"memory", "free"} else "left")
    for device in found:
        driver = f"{device.get('driver', '')} {device.get('driver_info', '')}".strip()
        # If the hardware lacks float64, it is computed in software.
        lacking = {"f64": "software"}
        flags = ("yes" if device.get(key) else lacking.get(key, "no") for key in ("f16", "bf16", "f64", "matrix"))
        table.add_row(
            f"dml:{device['index']}",
            str(device.get("name", "")),
            str(device.get("kind", "")),
            size(device.get("memory_total", 0)),
            size(device.get("memory_free", 0)),
            driver,
            str(device.get("api_version", "")),
            *flags,
        )
    return table
