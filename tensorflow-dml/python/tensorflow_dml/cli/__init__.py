"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tensorflow_dml._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(prog="tensorflow_dml", description="Every adapter as a device of TensorFlow.")
    parser.add_argument("--version", action="version", version=f"tensorflow-dml {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="check everything that the device depends on")
    devices = commands.add_parser("devices", help="print the adapters")
    devices.add_argument("--json", action="store_true", help="as JSON")
    chosen = parser.parse_args(arguments)
    if chosen.command == "doctor":
        from tensorflow_dml.cli import doctor

        return doctor.run()
    from tensorflow_dml.cli import devices as command

    return command.run(chosen.json)
