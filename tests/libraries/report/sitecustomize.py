"""What every Python that the runner starts imports first: at its end it tells what fell back to the
CPU.

So the programs need know nothing of it.
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
