"""The running time of this process."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

_IMPORTED = time.time()


def since_start() -> float:
    """Return the seconds since the process started; if the system does not report that, since this
    module was imported.
    """
    try:
        if sys.platform == "linux":
            return _linux()
        if sys.platform == "win32":
            return _windows()
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    return time.time() - _IMPORTED


def _linux() -> float:
    # Field 22 of stat, counted from after the name in parentheses, which may contain spaces.
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _windows() -> float:
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    created, ended, system, user = (ctypes.c_uint64() for _ in range(4))
    times = (ctypes.byref(value) for value in (created, ended, system, user))
    if not kernel.GetProcessTimes(ctypes.c_void_p(-1), *times):
        raise OSError("GetProcessTimes failed")
    unix_epoch_s = 11_644_473_600
    return time.time() - (created.value / 1e7 - unix_epoch_s)
