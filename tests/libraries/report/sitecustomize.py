"""Imported first by every Python that the runner starts: at its end it reports the fallbacks to the
CPU.

So the programs need no code for that.
"""

from __future__ import annotations

import atexit
import json
import os
import sys


def _tell() -> None:
    package = sys.modules.get("torch_dml")
    if package is not None and package.is_loaded():
        with open(os.environ["LIBRARIES_REPORT"], "a") as file:
            file.write(json.dumps(package.fallbacks()) + "\n")


atexit.register(_tell)
