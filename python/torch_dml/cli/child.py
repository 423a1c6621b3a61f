"""Runs the steps of torch_dml.cli.probe in a child process, so that a driver that crashes does not
end this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_TIMEOUT_S = 180


def probe(step: str, **environment: str) -> dict[str, Any]:
    """Run a step and return its result, or how it failed; a crash is a result too."""
    command = [sys.executable, "-m", "torch_dml", "_probe", step]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": f"no answer within {_TIMEOUT_S} s: the driver hangs"}
    lines = done.stdout.strip().splitlines()
    try:
        result: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        tail = "\n".join(done.stderr.strip().splitlines()[-3:])
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        return {"ok": False, "error": f"the process that tried it ended with {how}\n{tail}".strip()}
    return result
