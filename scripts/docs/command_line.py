"""Generates docs/reference/command-line.md from argparse's parsers."""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

HEAD = """# Command line

Written by `python scripts/docs` from the program's own help; do not edit. `torch-dml COMMAND` is
the same as `python -m torch_dml COMMAND`. The exit status is 0 where all went well, 1 after an
error or where `compare` found something, and 130 after an interrupt; `trace` and `run` exit with
their script's status.
"""


def files(root: Path) -> dict[Path, str]:
    """Return the page."""
    parser = _parser(root / "python" / "torch_dml")
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    parts = [HEAD, "| command | what it does |\n|---|---|"]
    parts += [f"| [`{name}`](#{name}) | {text} |" for name, text in helps.items()]
    parts += [_section(name, commands.choices[name]) for name in helps]
    return {root / "docs" / "reference" / "command-line.md": "\n".join(parts)}


def _parser(package: Path) -> argparse.ArgumentParser:
    # The package's own __init__ loads torch, which the command line does not need.
    module: Any = types.ModuleType("torch_dml")
    module.__path__ = [str(package)]
    sys.modules["torch_dml"] = module
    parser = importlib.import_module("torch_dml.cli")._parser()
    del sys.modules["torch_dml"]
    return parser  # type: ignore[no-any-return]


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    usage = " ".join(["python -m torch_dml", name, "[OPTIONS]", *map(_positional, parser._get_positional_actions())])
    rows = [_row(action) for action in parser._actions if action.dest != "help"]
    table = "\n| argument | meaning |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"\n## {name}\n\n{textwrap.fill(parser.description or '', 100)}\n\n```text\n{usage}\n```\n{table}"


def _positional(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest.upper())
    return {"*": f"[{name} ...]", argparse.REMAINDER: "..."}.get(str(action.nargs), name)


def _row(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    names = ", ".join(f"`{f'{option} {value}'.strip()}`" for option in action.option_strings) or f"`{value}`"
    text = (action.help or "").replace("|", "\\|") % {**vars(action), "prog": ""} if action.help else ""
    return f"| {names} | {text} |"
