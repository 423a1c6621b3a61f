"""Tests in several threads, and in separate processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable

from .environment import ROOT

# Number of threads of `in_threads`.
THREADS = 8
# What Mesa's kernel interface without a GPU (scripts/intel.sh) says of requests that it does not
# know.
_SHIM = re.compile(r"(Unknown (drm_i915_query_item|DRM_IOCTL)|DRM_SHIM: ).*\n")


def in_threads(work: Callable[[int], None]) -> None:
    """Run `work(0)` to `work(7)` in parallel, each in its own thread; raise the first error."""
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(index: int) -> None:
        try:
            start.wait()
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run_python(*arguments: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a new Python, from the repository's root, with variables added to the environment."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    done.stderr = _SHIM.sub("", done.stderr)
    return done
