"""Run the demo and write its output as docs/images/demo.svg: python
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
    # Not a terminal: then only the final state of a progress bar is recorded.
    console = Console(record=True, width=88, force_terminal=False, color_system=None)
    recorded: Any = lambda **_: console  # noqa: E731
    demo.Console = recorded  # type: ignore[misc]
    status = demo.run("dml", demo.EPOCHS_FOR_GOAL, 0)
    console.save_svg(str(TARGET), title="python -m torch_dml demo")
    return status


if __name__ == "__main__":
    sys.exit(main())
