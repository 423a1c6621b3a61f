"""`compare`: runs a script's training steps on the device and on the CPU, and names the first
operator whose results differ too much.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from rich.console import Console

import torch_dml
from torch_dml.backend import DEVICE
from torch_dml.cli.script import program


def run(given: argparse.Namespace) -> int:
    """Compare, print and write the report; return 1 if there is a finding."""
    torch_dml.load()
    from torch_dml.compare import report_terminal
    from torch_dml.compare.options import Options
    from torch_dml.compare.script import compare_script

    target = torch.device(given.device or DEVICE)
    page = Path(given.output)
    options = Options(
        seed=given.seed,
        repeat=not given.once,
        accumulated=not given.operators_only,
        max_elements=given.max_elements,
        folder=str(page.parent),
    )
    script = program(given.script, given.arguments, module=given.module)
    try:
        report = compare_script(script, target, given.steps, options)
    except MemoryError as error:
        raise RuntimeError(str(error) or "out of memory: --operators-only takes less") from error
    report.save_html(page)
    if given.json:
        Path(given.json).write_text(json.dumps(report.to_dict(), indent=1), encoding="utf-8")
    console = Console(file=sys.stderr)
    report_terminal.show(report, console, given.rows)
    console.print(f"The whole of it is in {page}.", soft_wrap=True)
    return 0 if report.healthy else 1
