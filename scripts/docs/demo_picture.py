"""Run the demo and write what it shows as docs/images/demo.svg: python
scripts/docs/demo_picture.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from torch_dml.cli import demo

TARGET = Path(__file__).parents[2] / "docs" / "images" / "demo.svg"


def main() -> int:
    # Not a terminal's: of a progress bar it then keeps the last state only.
    console = Console(record=True, width=88, force_terminal=False, color_system=None)
    recorded: Any = lambda **_: console  # noqa: E731
    demo.Console = recorded  # type: ignore[misc]
    status = demo.run("dml", demo.EPOCHS_FOR_GOAL, 0)
    console.save_svg(str(TARGET), title="python -m torch_dml demo")
    return status


if __name__ == "__main__":
    sys.exit(main())
